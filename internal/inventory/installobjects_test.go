package inventory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// usedBy returns an install object that uses a Provider.
func usedBy(kind, name, provider string, ready v1.Condition) *frontend.Object {
	in := packagesv1alpha1.NewInstall(kind)
	in.SetNamespace("team")
	in.SetName(name)
	in.InstallStatus().Provider = provider
	in.SetConditions(metav1.Time{}, ready)
	return firstgen.Frontend().Of(in)
}

func TestADescriptionListsTheInstallObjectsOfAProvider(t *testing.T) {
	ready := v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionTrue, Reason: "Available"}
	failed := v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: "AmbiguousKind", Message: "2 packages provide the kind",
	}
	all := []*frontend.Object{
		usedBy(packagesv1alpha1.ClusterPackageInstallKind, "boats", "boats", ready),
		usedBy(packagesv1alpha1.PackageInstallKind, "mine", "boats", ready),
		usedBy(packagesv1alpha1.ClusterPackageInstallKind, "rafts", "", failed),
	}
	boats := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	want := []string{
		"ClusterPackageInstall team/boats Ready=True Available", "PackageInstall team/mine Ready=True Available",
	}
	if got := InstallLines(InstallsOf(all, boats)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := InstallsOf(all, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}); len(got) > 0 {
		t.Errorf("a Function has the install objects %v", got)
	}

	t.Run("AnAbsentPackageIsExplained", func(t *testing.T) {
		absent := ErrPackageNotFound.New(nil, "no package rafts is installed")
		err := ExplainAbsent(absent, all, "provider/rafts")
		if e := errcode.From(err); e.Code.Name != ErrPackageNotFound.Name ||
			!strings.Contains(err.Error(), "AmbiguousKind: 2 packages provide the kind") {
			t.Errorf("the error is %v", err)
		}
		for _, name := range []Name{"ferries", "provider/ferries"} {
			if err := ExplainAbsent(absent, all, name); !errors.Is(err, absent) {
				t.Errorf("the error of %s is %v", name, err)
			}
		}
	})
	t.Run("TheTextIsLimited", func(t *testing.T) {
		var many []*frontend.Object
		for i := range 100 {
			many = append(many, usedBy(packagesv1alpha1.PackageInstallKind, fmt.Sprint("n", i), "boats", ready))
		}
		if lines := InstallLines(InstallsOf(many, boats)); len(lines) != shownInstalls+1 ||
			lines[shownInstalls] != "80 more objects" {
			t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
		}
	})
}
