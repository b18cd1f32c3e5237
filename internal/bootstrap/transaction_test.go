package bootstrap_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/controller/fences"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// makesTransaction proves that the manager carries out a transaction under a ChangePolicy, and enforces the policy.
func (s *testEnv) makesTransaction(t *testing.T) {
	t.Helper()
	ref := s.Push(
		t, "transaction", "v1.0.0",
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: transaction}\n",
	)
	x := &v1alpha1.Transaction{
		ObjectMeta: metav1.ObjectMeta{Name: "permissions"},
		Spec: v1alpha1.TransactionSpec{Remove: []v1alpha1.RemovedPackage{}, Packages: []v1alpha1.WantedPackage{{
			PackageName: v1alpha1.PackageName{Kind: v1.ConfigurationKind, Name: "transaction"},
			Spec:        v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}},
		}}},
	}
	p := &v1alpha1.ChangePolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangePolicyName}}
	s.CreateTemporary(t, p)
	wait.Until(t, env.Limit, "the ChangePolicy is enforced", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		return fmt.Sprint(err, p.Status.Conditions), meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.TypeEnforced)
	})
	s.CreateTemporary(t, x)
	wait.Until(t, env.Limit, "the transaction succeeds", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
		return fmt.Sprintf("%v %+v", err, x.Status), x.Status.Phase == v1alpha1.Succeeded
	})
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, o := range fences.Kinds() {
		o.SetName(fence.ChangesName)
		s.WaitGone(t, o)
	}
	installed := env.NewPackage(v1.ConfigurationKind, "transaction", ref)
	wait.Until(t, env.Limit, "the API server permits changes again", func() (string, bool) {
		err := s.Client.Delete(t.Context(), installed.DeepCopyObject().(client.Object), client.DryRunAll)
		return fmt.Sprint(err), err == nil
	})
	s.deleteAll(t, installed)
}
