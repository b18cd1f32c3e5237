package web_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
)

// TestWhatAClientMayNotReadDoesNotExist compares a server with private packages to one that never had them: every page
// that either serves, every suggestion, count and feed is equal, and private pages cannot be distinguished from missing
// ones.
func TestWhatAClientMayNotReadDoesNotExist(t *testing.T) {
	for _, private := range []string{
		"acme/provider-boats", "harbours/provider-docks", "acme/function-rigging", "acme/configuration-harbour",
	} {
		t.Run(private, func(t *testing.T) {
			repository := webtest.Registry + "/" + private
			all := webtest.Packages(t)
			options := webtest.Options()
			options.May = func(r *http.Request, name string) bool {
				return name != repository || r.Header.Get("Authorization") == "reader"
			}
			with := newHandler(t, all, options)
			without := newHandler(
				t, slices.DeleteFunc(slices.Clone(all), func(v folder.Version) bool { return v.Repository == repository }),
				webtest.Options(),
			)
			everything := newHandler(t, all, webtest.Options())

			paths := maps.Clone(addresses(t, with))
			maps.Copy(paths, addresses(t, without))
			maps.Copy(paths, addresses(t, everything))
			for _, q := range []string{
				"boat", "kind:Boat", "kind:Berth", "group:*acme*", "type:Provider", "docks", "field:insured",
				"provides:Boat.marine.acme.example", "harbour",
			} {
				paths["/search?q="+q], paths["/api/v1/suggest?q="+q], paths["/api/v1/search?q="+q] = true, true, true
			}
			hidden := 0
			for path := range paths {
				a, b := serve(with, path, ""), serve(without, path, "")
				if a.Code != b.Code || a.Body.String() != b.Body.String() || a.Header().Get("ETag") != b.Header().Get("ETag") {
					t.Errorf("%s: status %d with the private package, %d without it", path, a.Code, b.Code)
				}
				if a.Code != http.StatusNotFound {
					continue
				}
				if full := serve(everything, path, ""); full.Code == http.StatusOK {
					hidden++
					if reader := serve(with, path, "reader"); reader.Body.String() != full.Body.String() {
						t.Errorf("a client that may read %s does not see it", path)
					}
				}
				if missing := serve(with, "/p/none/none", ""); a.Body.String() != missing.Body.String() &&
					!strings.HasPrefix(path, "/api/") {
					t.Errorf("%s differs from a missing page", path)
				}
			}
			if hidden == 0 {
				t.Error("no page was hidden")
			}
		})
	}
}
