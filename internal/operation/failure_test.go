package operation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// TestFailureOfACondition proves that a command ends with the code, the reason and the fix
// of the condition, and with the fix once.
func TestFailureOfACondition(t *testing.T) {
	for message, want := range map[string]struct{ what, do string }{
		"NoMeta: cannot read a: it has no metadata. " +
			xpkg.ErrNoMeta.Fix: {"provider/x cannot be installed: cannot read a: it has no metadata", xpkg.ErrNoMeta.Fix},
		"NoMeta: cannot read a. Run `xpkg lint a`. Then install it.": {
			"provider/x cannot be installed: cannot read a", "Run `xpkg lint a`. Then install it.",
		},
		"NoMeta: cannot read a.": {"provider/x cannot be installed: cannot read a", xpkg.ErrNoMeta.Fix},
		revision.ErrRolledBack.Name + ": rolled back to x-1. Update to another version.": {
			"provider/x does not run the requested version: rolled back to x-1", "Update to another version.",
		},
	} {
		p := v1.NewPackage(v1.ProviderKind)
		p.SetName("x")
		p.SetConditions(metav1.Now(), v1.Condition{Type: v1.TypeHealthy, Status: corev1.ConditionFalse, Message: message})
		f := errcode.From(finalFailure(p))
		if f.Error() != want.what || f.Do != want.do {
			t.Errorf("%s:\n%s\n%s", message, f.Error(), f.Do)
		}
	}
}

// The failure of an update names the command that brings back the version that was healthy.
func TestFailureOfAnUpdateNamesTheRollback(t *testing.T) {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("x")
	p.PackageStatus().CurrentRevision, p.PackageStatus().LastHealthyRevision = "x-2", "x-1"
	p.SetConditions(metav1.Now(), v1.Condition{
		Type: v1.TypeHealthy, Status: corev1.ConditionFalse, Message: "NoMeta: cannot read a. Run `xpkg lint a`.",
	})
	f := errcode.From(finalFailure(p))
	if f.Error() != "provider/x cannot be updated: cannot read a" ||
		f.Do != "Run `xpkg lint a`. `xpkg rollback provider/x` returns to the last healthy version, x-1." {
		t.Errorf("%s\n%s", f.Error(), f.Do)
	}
}
