package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A first install of which the API server rejects one object leaves no other object behind, and a retry that fails as
// well writes nothing. Once the API server accepts the object, the package is installed.
//
// hardening: I-9
func TestRejectedFirstInstallLeavesNothing(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	admit := denyCRDs(t, s)
	const group = "undo.test"
	stream := provider("undo")
	names := []string{}
	for i := range 6 {
		stream += crd(group, fmt.Sprint("Kind", i), "allowed")
		names = append(names, fmt.Sprintf("kind%ds.%s", i, group))
	}
	stream += crd(group, "Refused", denied)
	ref, _ := r.push(t, "acme/undo:v1", stream)
	s.start(t)
	p := env.NewProvider("undo", ref)
	s.CreateTemporary(t, p)
	isDenied := func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v", p.Status.Conditions), ready.ObservedGeneration == p.Generation &&
			ready.Status == corev1.ConditionFalse && strings.HasPrefix(ready.Message, "AdmissionDenied: ")
	}
	absent := func() {
		t.Helper()
		for _, name := range names {
			wait.Until(t, limit, name+" is deleted", func() (string, bool) {
				err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, newCRD())
				return fmt.Sprint(err), apierrors.IsNotFound(err)
			})
		}
	}
	wait.Until(t, limit, "the install is refused", isDenied)
	absent()

	// The manager tries again, and finds that with a dry run.
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = new(int64(7)) })
	wait.Until(t, limit, "the retry is refused", isDenied)
	absent()

	admit()
	var probe apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(crd("probe.undo.test", "Probe", denied)), &probe); err != nil {
		t.Fatal(err)
	}
	eventually(
		t, "the policy is gone",
		func() bool { return s.Client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll) == nil },
	)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.CommonLabels = map[string]string{"try": "again"} })
	s.WaitHealthy(t, p)
	remove(t, s, p)
}
