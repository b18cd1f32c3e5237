// Package browser runs Chromium for tests of web pages.
package browser

import (
	"context"
	"errors"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// names are the names of the program in distributions.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"}

// A Browser is one process of Chromium with an empty profile.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// New starts Chromium, which is stopped when the test ends. Without Chromium it calls [prerequisite.Missing].
func New(t testing.TB) *Browser {
	t.Helper()
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		prerequisite.Missing(t, "Chromium is not installed: install the package chromium")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true),
		// Requests to other hosts fail without leaving the machine.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.WSURLReadTimeout(2 * time.Minute),
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		stop()
		t.Fatalf("start Chromium: %v", err)
	}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the process has ended
		closeBrowser()
		stop()
	})
	return &Browser{t, ctx}
}

// View configures a tab.
type View struct {
	Width, Height int64
	Dark          bool
	// Phone emulates a touch screen with a mobile viewport.
	Phone bool
	// NoScript disables JavaScript.
	NoScript bool
}

// A Tab is a tab that records its requests, scripts and violations.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu sync.Mutex
	// requests, scripts, violations and dialogs are events since Open.
	requests, scripts, violations, dialogs []string
}

// Tab opens a tab, which is closed when the test ends.
func (b *Browser) Tab(v View) *Tab {
	b.t.Helper()
	tab := &Tab{t: b.t}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(tab.record))
	b.t.Cleanup(cancel)
	tab.ctx = ctx
	if err := tab.configure(v); err != nil {
		b.t.Fatalf("open a tab: %v", err)
	}
	return tab
}

func (tab *Tab) configure(v View) error {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	return errors.Join(
		call(tab.ctx, network.Enable, network.EnableParams{}),
		call(tab.ctx, cdplog.Enable, cdp.Empty{}),
		call(tab.ctx, page.Enable, page.EnableParams{}),
		call(tab.ctx, debugger.Enable, debugger.EnableParams{}),
		call(tab.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: v.Width, Height: v.Height, DeviceScaleFactor: 1, Mobile: v.Phone,
		}),
		call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
			Name: "prefers-color-scheme", Value: scheme,
		}}}),
		call(tab.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript}),
	)
}

// call calls a command in the tab of a context.
func call[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Run(
		ctx, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) },
	)
	return err
}

// Call calls a command in the tab, and returns its result.
func Call[P, R any](tab *Tab, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	return run(tab, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) })
}

// run runs an action in the tab, and returns its value.
func run[T any](tab *Tab, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, 2*time.Minute)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatal(err)
	}
	return out
}

func (tab *Tab) record(event any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tab.requests = append(tab.requests, e.Request.URL)
	case *debugger.EventScriptParsed:
		tab.scripts = append(tab.scripts, e.URL)
	case *cdplog.EventEntryAdded:
		if e.Entry.Source == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
			tab.violations = append(tab.violations, e.Entry.Text)
		}
	case *page.EventJavascriptDialogOpening:
		tab.dialogs = append(tab.dialogs, e.Message)
		go func() { _ = call(tab.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }()
	}
}

// Open loads an address and waits until the page is loaded.
func (tab *Tab) Open(address string) {
	tab.t.Helper()
	tab.mu.Lock()
	tab.requests, tab.scripts, tab.violations, tab.dialogs = nil, nil, nil, nil
	tab.mu.Unlock()
	tab.Do(chromedp.Navigate(address))
}

// Do runs actions in the tab.
func (tab *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	run(tab, chromedp.Steps(actions...))
}

// Follow runs an action that leads to another page, and waits until the page is loaded.
func (tab *Tab) Follow(action chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	run(tab, chromedp.WaitEvent(page.LoadEventFired, func(page.EventLoadEventFired) bool { return true }, action))
}

// Evaluate returns the value of an expression in the page, or the value of the promise that it returns. The expression
// counts as a script without an address.
func Evaluate[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return run(tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Screenshot returns a picture of the page as PNG: of the whole page, or of the part that the tab shows.
func (tab *Tab) Screenshot(whole bool) []byte {
	tab.t.Helper()
	if whole {
		return run(tab, chromedp.FullScreenshot(100))
	}
	return run(tab, chromedp.CaptureScreenshot())
}

// Foreign returns the requests to other hosts than the one of an address. Data in addresses is not a request.
func (tab *Tab) Foreign(address string) []string {
	own, err := url.Parse(address)
	if err != nil {
		tab.t.Fatal(err)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	var out []string
	for _, r := range tab.requests {
		if u, err := url.Parse(r); err != nil || u.Host != own.Host && u.Scheme != "data" && u.Scheme != "about" {
			out = append(out, r)
		}
	}
	return out
}

// Scripts returns the addresses of the scripts that were loaded, without those whose address ends with one of the
// suffixes.
func (tab *Tab) Scripts(except ...string) []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tab.scripts), func(s string) bool {
		return slices.ContainsFunc(except, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
	})
}

// Violations returns the reports of blocked content, and Dialogs the dialogs that scripts opened.
func (tab *Tab) Violations() []string { return tab.copy(&tab.violations) }

// Dialogs returns the messages of the dialogs that scripts opened.
func (tab *Tab) Dialogs() []string { return tab.copy(&tab.dialogs) }

func (tab *Tab) copy(list *[]string) []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(*list)
}
