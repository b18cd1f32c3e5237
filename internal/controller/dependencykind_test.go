package controller_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A dependency whose package has another kind than its dependent expects is installed with its real kind.
//
// hardening: F10
func TestDependencyOfAnotherKindIsInstalledWithItsKind(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Function", "real:v1.0.0")
	p := w.config(t, "expects", w.push(t, "Configuration", "expects:v1.0.0", "provider=real"))
	w.WaitHealthy(t, p)
	w.waitInstalled(t, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "dep-real"}}, "v1.0.0")
	if got, want := w.all(t), []string{"configuration/dep-expects", "function/dep-real"}; !slices.Equal(got, want) {
		t.Errorf("the packages are %v, want %v", got, want)
	}
	w.assertUnchanged(t)
}

// A package that skips dependency resolution satisfies the dependencies of other packages, and its own
// dependencies change nothing.
//
// hardening: F13
func TestPackageThatSkipsResolutionSatisfiesDependencies(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "relay:v2.0.0")
	skips := newConfiguration("dep-by-hand", w.push(t, "Configuration", "skips:v1.0.0", "relay <v2", "nowhere"))
	skips.Spec.SkipDependencyResolution = true
	w.CreateTemporary(t, skips)
	w.WaitHealthy(t, skips)

	user := w.config(t, "user", w.push(t, "Configuration", "user:v1.0.0", "configuration=skips >=v1", "relay >=v2"))
	w.WaitHealthy(t, user)
	w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-relay"}}, "v2.0.0")
	later := w.config(t, "later", w.push(t, "Configuration", "later:v1.0.0", "configuration=skips >=v2"))
	w.WaitCondition(t, later, v1.TypeHealthy, corev1.ConditionFalse, w.repository("skips"))
	if message := later.GetCondition(v1.TypeHealthy).Message; !strings.Contains(message, ">=v2") {
		t.Errorf("the message does not name the constraint: %s", message)
	}
	want := []string{
		"configuration/dep-by-hand", "configuration/dep-later", "configuration/dep-user", "provider/dep-relay",
	}
	if got := w.all(t); !slices.Equal(got, want) {
		t.Errorf("the packages are %v, want %v", got, want)
	}
	w.WaitHealthy(t, skips)
	w.assertUnchanged(t)
}
