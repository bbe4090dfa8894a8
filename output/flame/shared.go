package flame

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"path/filepath"
	"strings"

	"goprof/output"
)

// Other pages use these parts of a flame graph, too.
var (
	// BaseStyle is the style of all pages: colours, header, footer, dialogs.
	//go:embed base.css
	BaseStyle string

	// headHTML is the beginning of all pages: their security policy, their title, and the line below it.
	//go:embed head.html
	headHTML string

	//go:embed core.js
	coreJS string
	//go:embed words.js
	wordsJS string
	//go:embed keys.js
	keysJS string

	// DrawScript lays out and paints a view. It needs names and kindOf: names and kinds by number.
	//go:embed draw.js
	DrawScript string
)

// CoreScript decodes trees and names (see Encode), formats figures, and has the functions that all pages share.
var CoreScript = coreJS + wordsJS + keysJS

type Parts struct {
	Title, Line   string // text
	Source        string // the name of the drawn file: see Mark
	Above         string // goprof's HTML above the graph, or empty
	Style, Script string // goprof's own
	Data          []byte // JSON without '<', which the script finds in the element "data"
}

// Mark is the beginning of pages and pictures that goprof draws from the file with this name. goprof recognises them by
// it.
func Mark(source string) string {
	return output.EscapeHTML(`goprof of "` + output.CleanName(filepath.Base(source)) + `"`)
}

// Seal writes a page. The template begins with @HEAD@, the head of all pages, and has the placeholders @SOURCE@,
// @TITLE@, @LINE@, @ABOVE@, @STYLE@, @STYLE_HASH@, @SCRIPT@, @SCRIPT_HASH@ and @DATA@. The page's
// Content-Security-Policy allows only the style and the script with these hashes.
func Seal(to io.Writer, template string, p Parts) error {
	script := "'use strict';(() => {\n" + p.Script + "})();\n"
	w := bufio.NewWriter(to)
	source := ""
	if p.Source != "" {
		source = `<meta name="source" content="` + Mark(p.Source) + "\">\n"
	}
	_, err := strings.NewReplacer(
		"@SOURCE@", source, "@TITLE@", output.EscapeHTML(p.Title), "@LINE@", output.EscapeHTML(p.Line),
		"@ABOVE@", p.Above,
		"@STYLE@", p.Style, "@STYLE_HASH@", hash(p.Style),
		"@SCRIPT@", script, "@SCRIPT_HASH@", hash(script),
		"@DATA@", string(p.Data),
	).WriteString(w, strings.Replace(template, "@HEAD@", headHTML, 1))
	if err != nil {
		return err
	}
	return w.Flush()
}

// hash returns the name of an element's text in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
