package registry

import (
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

func TestReplacements(t *testing.T) {
	for replacement, want := range map[string]bool{
		"": true, "v1.1.1": true, "1.1.1": true, "registry.example.org/acme/ships": true,
		"registry.example.org/acme/ships:v2.0.0": true,
		"127.0.0.1:5000/ships":                   true, "acme/ships": true,
		"ships": false, "v1.1": false, "v1.1.1 or later": false, "registry.example.org/acme/ships:": false,
		"https://registry.example.org/acme/ships": false,
	} {
		s, err := reasonFlags{ReplacedBy: replacement}.status(catalog.Yanked)
		if (err == nil) != want || err == nil && s.ReplacedBy != replacement ||
			err != nil && !errors.Is(err, terminal.ErrUsage) {
			t.Errorf("%q: %+v, %v", replacement, s, err)
		}
	}
}
