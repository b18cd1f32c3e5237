package packages

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
)

// A row is printed again only if a cell other than the age differs.
func TestWatchPrintsChangedRowsOnly(t *testing.T) {
	c, printed := &ListCmd{}, map[string][]string{}
	p := &v1.Provider{}
	p.Name = "boats"
	change := func(deleted bool) []string {
		return c.change(t.Context(), nil, printed, inventory.Event{Package: p, Deleted: deleted})
	}
	if row := change(false); len(row) != len(packageTable.Header) || row[0] != "provider/boats" {
		t.Errorf("first: %q", row)
	}
	if row := change(false); row != nil {
		t.Errorf("unchanged: %q", row)
	}
	p.SetConditions(metav1.Now(), v1.Healthy())
	if row := change(false); len(row) == 0 || row[2] != string(corev1.ConditionTrue) {
		t.Errorf("healthy: %q", row)
	}
	if row := change(true); len(row) == 0 || row[1] != "Deleted" {
		t.Errorf("deleted: %q", row)
	}
	if row := change(false); row == nil {
		t.Error("a package that is created again is not printed")
	}
}
