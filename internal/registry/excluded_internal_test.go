package registry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// TestTheLogNamesExcludedPackages logs the packages that an index leaves out, once for each reason.
func TestTheLogNamesExcludedPackages(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	x := NewLocalIndexer(nil, "test")
	x.log = slog.New(slog.NewTextHandler(log, nil))
	with := func(repository string, reason *catalog.IndexError) *catalog.Catalog {
		return &catalog.Catalog{Packages: []catalog.Package{{Repository: repository, Error: reason}}}
	}
	large, failed := &catalog.IndexError{Code: catalog.ErrUnindexable.Name, Message: "it is too large"},
		&catalog.IndexError{Code: "ServerError", Message: "it fails"}
	for _, c := range []struct {
		partition      string
		previous, next *catalog.Catalog
		isLogged       bool
	}{
		{"", &catalog.Catalog{}, with("r/boats", large), true},
		{"", with("r/boats", nil), with("r/boats", large), true},
		{"", with("r/boats", large), with("r/boats", &catalog.IndexError{Code: large.Code, Message: large.Message}), false},
		{"", with("r/boats", large), with("r/boats", failed), true},
		{"", with("r/boats", large), with("r/boats", nil), false},
		{"acme", &catalog.Catalog{}, with("r/boats", large), true},
		{"acme", &catalog.Catalog{}, with("r/boats", failed), false}, // The site can have its content.
	} {
		log.Reset()
		x.logExcluded(c.partition, c.previous, c.next)
		reason := c.next.Packages[0].Error
		if isLogged := strings.Contains(log.String(), "r/boats"); isLogged != c.isLogged ||
			isLogged && !strings.Contains(log.String(), reason.Message) {
			t.Errorf("partition %q, %+v after %+v: %s", c.partition, reason, c.previous.Packages, log)
		}
	}
}
