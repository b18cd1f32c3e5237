package search

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

func TestADamagedRowOfTimesCountsAsMissing(t *testing.T) {
	facts := largecatalog.Facts("provider-old", "Provider")
	c, err := catalog.Build(catalog.Config{Name: "test"}, []catalog.Facts{facts})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "search.db")
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, now := range []time.Time{day, day.AddDate(0, 1, 0)} {
		d, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.RecordPublished(t.Context(), &c, now); err != nil {
			t.Fatal(err)
		}
		if now != day && !d.Published(facts.Repository)["v1.0.0"].Equal(now) {
			t.Errorf("the times are %v", d.Published(facts.Repository))
		}
		if _, err := d.db.ExecContext(t.Context(), "UPDATE published SET times = '{' WHERE repository != ''"); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
