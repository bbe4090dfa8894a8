package browser

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// shared is the browser of this test binary. It starts with the first page that is opened: half of a test's time was
// a browser's start.
var shared struct {
	sync.Once
	ctx context.Context
	end func()
	err error
}

// Main runs the tests of a package that opens pages, and ends their browser. Call it in TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(code)
}

// running is the browser of this test binary.
func running(t *testing.T) context.Context {
	t.Helper()
	path := find(t)
	shared.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
		ctx, endAll := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, endFirst := chromedp.NewContext(ctx)
		shared.ctx, shared.end = ctx, func() { endFirst(); endAll() }
		shared.err = chromedp.Do(ctx) // starts it
	})
	if shared.err != nil {
		t.Fatalf("the browser does not start: %v", shared.err)
	}
	return shared.ctx
}
