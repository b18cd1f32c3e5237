package web_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
)

// newServer serves the packages of package webtest.
func newServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(newHandler(t, webtest.Packages(t), webtest.Options()))
	t.Cleanup(server.Close)
	return server.URL
}

func newHandler(t testing.TB, versions []folder.Version, options folder.Options) *web.Handler {
	t.Helper()
	source, err := folder.New(versions, options)
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(source, web.Options{Name: "Acme packages"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const boats = "/p/registry.example.org/acme/provider-boats"

// screenshots are the pages of the documentation.
var screenshots = map[string]struct {
	path string
	view browser.View
}{
	"search":     {"/search?q=boat", browser.View{Width: 1100, Height: 700}},
	"package":    {boats, browser.View{Width: 1100, Height: 860}},
	"kind":       {"/k/marine.acme.example/Boat", browser.View{Width: 1100, Height: 860}},
	"kind-dark":  {"/k/marine.acme.example/Boat", browser.View{Width: 1100, Height: 860, Dark: true}},
	"kind-phone": {"/k/marine.acme.example/Boat", browser.View{Width: 390, Height: 844, Phone: true}},
	"diff": {"/diff/registry.example.org/acme/provider-boats/v1.1.0..v2.0.0", browser.View{
		Width: 1100, Height: 860,
	}},
	"diff-dark": {"/diff/registry.example.org/acme/provider-boats/v1.1.0..v2.0.0", browser.View{
		Width: 1100, Height: 860, Dark: true,
	}},
}

// TestScreenshots writes pictures of the pages into the folder that XPKG_SCREENSHOTS names.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("XPKG_SCREENSHOTS")
	if dir == "" {
		t.Skip("set XPKG_SCREENSHOTS to the folder for the pictures")
	}
	server, b := newServer(t), browser.New(t)
	for name, s := range screenshots {
		tab := b.Tab(s.view)
		tab.Open(server + s.path)
		if err := os.WriteFile(filepath.Join(dir, name+".png"), tab.Screenshot(false), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
