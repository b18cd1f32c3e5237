package registry_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// TestNewVersionsAreOrderedByTheTimeOfTheServer pushes versions whose authors state no time, or one in the past or in
// the future. The home page, the feeds and the list of packages have the times at which the server saw the versions,
// also after a restart.
func TestNewVersionsAreOrderedByTheTimeOfTheServer(t *testing.T) {
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	clock := &clock{start: day}
	change := func(o *registry.Options) { o.Pages, o.Now = pages.New, clock.read }
	s := start(t, change)
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	names := []string{"provider-future", "provider-undated", "provider-past"}
	for i, created := range []time.Time{day.AddDate(60, 0, 0), {}, day.AddDate(-9, 0, 0)} {
		built, err := image.Build(t.Context(), image.Input{PackageYAML: packageYAML(names[i], "Boat"), Created: created})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.client(t, s.admin).
			Push(t.Context(), oci.MustParseReference(host+"/acme/"+names[i]+":v1.0.0"), built); err != nil {
			t.Fatal(err)
		}
		s.waitUntil(t, names[i]+" is in the index", func() bool {
			_, body := s.get(t, "/api/v1/packages")
			return strings.Contains(body, names[i])
		})
		clock.add(24 * time.Hour)
	}
	check := func(s *server) {
		t.Helper()
		for path, dates := range map[string][]string{
			"/": nil, "/feed.atom": {"2026-03-04T09:00:00Z", "2026-03-03T09:00:00Z", "2026-03-02T09:00:00Z"},
		} {
			_, body := s.get(t, path)
			last := -1
			for i, name := range []string{"provider-past", "provider-undated", "provider-future"} {
				at := strings.Index(body, "acme/"+name)
				if at <= last {
					t.Errorf("%s lacks %s, or names it before a newer one:\n%s", path, name, body)
				}
				if last = at; dates != nil && !strings.Contains(body, "<updated>"+dates[i]) {
					t.Errorf("%s lacks the time %s of %s:\n%s", path, dates[i], name, body)
				}
			}
		}
		if status, body := s.get(t, "/p/"+host+"/acme/provider-undated@/feed.atom"); status != http.StatusOK ||
			!strings.Contains(body, "<updated>2026-03-03T09:00:00Z") {
			t.Errorf("the feed of a package: %d %s", status, body)
		}
	}
	check(s)
	s.stop()
	again := start(t, func(o *registry.Options) { change(o); o.Dir = s.dir })
	again.waitUntil(t, "the index is ready", func() bool { return again.Site().Healthy() == nil })
	check(again)
}
