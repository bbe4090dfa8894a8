// What all pages share: keys, tables of facts, the clipboard. A page has a search field "query" and a dialog "about".

// listenKeys calls the function of a key: from keysAt(event) first, then from keys. In the search field, only Escape is
// a key. A focused button keeps Enter and space.
const listenKeys = (keys, keysAt = () => ({})) => addEventListener('keydown', event => {
  const query = document.getElementById('query'), typing = event.target === query;
  if (document.getElementById('about').open || event.altKey || event.metaKey) return;
  if (event.ctrlKey && event.key !== 'f') return;
  if (event.target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ')) return;
  let action = keysAt(event)[event.key] || keys[event.key];
  if (event.ctrlKey) action = keys['/'];
  else if (typing && event.key !== 'Escape') action = null;
  if (!action) return;
  event.preventDefault();
  action(event);
});

// row adds a row to a table.
const row = (table, texts) => {
  const tr = table.insertRow();
  for (const text of texts) tr.insertCell().textContent = text;
};

// copyText copies text to the clipboard, and reports whether that worked.
const copyText = async text => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea'); // for pages that may not use the clipboard
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
};
