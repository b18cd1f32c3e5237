package tocore

import (
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
)

// The fence lets the core of the namespace write packages, and stays for other installations of core.
func TestUnfenceKeepsOtherAccounts(t *testing.T) {
	own, other := types.NamespacedName{Namespace: "crossplane-system", Name: "crossplane"},
		types.NamespacedName{Namespace: "other", Name: "core"}
	for name, tc := range map[string]struct{ before, after []types.NamespacedName }{
		"one core":      {[]types.NamespacedName{own}, nil},
		"two cores":     {[]types.NamespacedName{own, other}, []types.NamespacedName{other}},
		"another core":  {[]types.NamespacedName{other}, []types.NamespacedName{other}},
		"without fence": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.before != nil {
				fence := bootstrap.CoreFence(tc.before...)
				builder = builder.WithObjects(fence[0], fence[1])
			}
			m := &mover{Options{Client: builder.Build(), Namespace: own.Namespace}}
			fenced, _, err := m.readFence(t.Context())
			if want := slices.Contains(tc.before, own); err != nil || fenced != want {
				t.Errorf("before: fenced %t and %v, want %t", fenced, err, want)
			}
			if err := m.unfence(t.Context()); err != nil {
				t.Fatal(err)
			}
			fenced, _, err = m.readFence(t.Context())
			accounts, readErr := crossplane.FencedAccounts(t.Context(), m.Client)
			if err := errors.Join(err, readErr); err != nil || fenced || !slices.Equal(accounts, tc.after) {
				t.Errorf("after: fenced %t, accounts %v and %v, want %v", fenced, accounts, err, tc.after)
			}
			if exists, err := m.fenceExists(t.Context()); err != nil || exists != (tc.after != nil) {
				t.Errorf("the fence exists: %t, %v", exists, err)
			}
		})
	}
}
