package revisions

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Each advised command is one that the command line accepts: `xpkg install --kind` names one kind.
func TestTheAdviceForMissingKindsNamesOneKindForEachCommand(t *testing.T) {
	one, all := dependency.KindRef{Name: "Tide", Group: "reef.test", Version: "v1"},
		dependency.KindRef{Name: dependency.AllKinds, Group: "reef.test"}
	for _, c := range []struct {
		missing []dependency.KindRef
		want    string
	}{
		{[]dependency.KindRef{one}, "Run `xpkg install --kind Tide.reef.test/v1`, or"},
		{[]dependency.KindRef{all}, "`xpkg search group:reef.test` finds them"},
		{[]dependency.KindRef{all, one}, "Run `xpkg install --kind Tide.reef.test/v1`, or"},
	} {
		err := noProvider(v1.NewPackage(v1.ProviderKind), c.missing)
		text := errcode.From(err).Do
		if errcode.From(err).Code.Name != provide.ErrNoProvider.Name || !strings.Contains(text, c.want) ||
			strings.Contains(text, "--kind *") {
			t.Errorf("%v: %s", c.missing, text)
		}
	}
}
