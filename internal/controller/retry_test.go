package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// untilUpdateRefused waits until a package reports that the cluster refuses its requested version, and checks that it
// was not rolled back.
func untilUpdateRefused(t *testing.T, s *testEnv, p v1.Package, code string) {
	t.Helper()
	s.WaitPackage(t, p, "is refused with "+code, func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return ready.ObservedGeneration == p.GetGeneration() && ready.Status == corev1.ConditionFalse &&
			strings.HasPrefix(ready.Message, code+": ")
	})
	if b := p.PackageStatus().Rollback; b != nil {
		t.Errorf("rolled back: %+v", b)
	}
}

// An update that the cluster refuses changes nothing, and is installed without a further request once the cause is
// gone.
func TestARefusedUpdateIsInstalledOnceTheCauseIsGone(t *testing.T) {
	newThing := func(group, version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": "Thing", "metadata": map[string]any{"name": "t"},
			"spec": map[string]any{"sail": "red"},
		}}
	}
	withoutSail := func(crd string) string {
		return strings.Replace(crd, "x-kubernetes-preserve-unknown-fields: true", "properties: {oar: {type: string}}", 1)
	}
	for name, tc := range map[string]struct {
		code string
		// change changes the CRD Thing in the second version.
		change func(crd string) string
		// refuse makes the cluster refuse the second version, and returns a function that ends that.
		refuse func(t *testing.T, s *testEnv, group string) (admit func())
	}{
		"denied": {
			"AdmissionDenied", func(crd string) string {
				return strings.ReplaceAll(crd, "description: two", "description: "+denied)
			},
			func(t *testing.T, s *testEnv, _ string) func() { return denyCRDs(t, s) },
		},
		"denied-role": {
			"AdmissionDenied", func(crd string) string { return crd },
			func(t *testing.T, s *testEnv, _ string) func() { return denyNewRoles(t, s, "denied-role") },
		},
		"broken": {
			"BreaksObjects", withoutSail,
			func(t *testing.T, s *testEnv, group string) func() {
				thing := newThing(group, "v1")
				s.CreateTemporary(t, thing)
				return func() { deleteNow(t, s, thing) }
			},
		},
		"broken-crd": {
			"BreaksObjects", withoutSail,
			func(t *testing.T, s *testEnv, group string) func() {
				s.CreateTemporary(t, newThing(group, "v1"))
				return func() { deleteNow(t, s, object("CustomResourceDefinition", "things."+group)) }
			},
		},
		"immutable": {
			"ImmutableField", func(crd string) string { return strings.ReplaceAll(crd, "scope: Cluster", "scope: Namespaced") },
			func(t *testing.T, s *testEnv, group string) func() {
				return func() { deleteNow(t, s, object("CustomResourceDefinition", "things."+group)) }
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.options.ActivationDeadline, s.options.Permissions = time.Hour, &controller.Permissions{}
			r := newRegistry(t)
			group := name + ".retry.test"
			first, _ := r.push(t, "acme/"+name+":v1", provider(name, crd(group, "Other", "one"), crd(group, "Thing", "one")))
			second, _ := r.push(t, "acme/"+name+
				":v2", provider(name, crd(group, "Other", "two"), tc.change(crd(group, "Thing", "two"))))
			s.start(t)
			p := env.NewProvider(name, first)
			s.CreateTemporary(t, p)
			untilSettled(t, s, p)
			admit := tc.refuse(t, s, group)
			s.audit.Reset(group)
			env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
			untilUpdateRefused(t, s, p, tc.code)
			// A requested attempt changes nothing either.
			env.Update(
				t, s.Env, p, func(p *v1.Provider) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1.AnnotationRetry, "1") },
			)
			s.WaitPackage(t, p, "handled the request", func() bool { return p.Status.LastHandledRetry == "1" })
			untilUpdateRefused(t, s, p, tc.code)
			for _, c := range s.audit.Calls(group) {
				if c.Method != "GET" && !c.DryRun {
					t.Errorf("the refused update wrote: %s", c)
				}
			}
			admit()
			untilSettled(t, s, p)
			for _, kind := range []string{"others.", "things."} {
				if got := schemaDescription(t, s, kind+group); got == "one" {
					t.Errorf("%s is of version %s", kind+group, got)
				}
			}
			remove(t, s, p)
		})
	}
}

func deleteNow(t *testing.T, s *testEnv, o client.Object) {
	t.Helper()
	if err := s.Client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// After the deadline, a refused update is rolled back. A new value of the annotation is one more attempt, with the
// deadline of a first one.
func TestARolledBackUpdateIsTriedAgainOnRequest(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = 3 * time.Second
	r := newRegistry(t)
	first, _ := r.push(t, "acme/asked:v1", provider("asked", crd("asked.test", "Asked", "one")))
	second, _ := r.push(t, "acme/asked:v2", provider("asked", crd("asked.test", "Asked", denied)))
	s.start(t)
	admit := denyCRDs(t, s)
	p := env.NewProvider("asked", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
	untilRolledBack(t, s, p)
	b := p.Status.Rollback
	if !strings.HasPrefix(b.Message, "AdmissionDenied: ") || b.RetryTime == nil ||
		!strings.Contains(p.GetCondition(v1.TypeReady).Message, "`xpkg update provider/asked "+second+"`") {
		t.Errorf("rollback %+v, %s", b, p.GetCondition(v1.TypeReady).Message)
	}
	env.Update(t, s.Env, p, func(p *v1.Provider) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1.AnnotationRetry, "1") })
	s.WaitPackage(t, p, "is rolled back again", func() bool {
		now := p.Status.Rollback
		return p.Status.LastHandledRetry == "1" && now != nil && now.Time.After(b.Time.Time) && rolledBack(p)
	})
	admit()
	env.Update(t, s.Env, p, func(p *v1.Provider) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1.AnnotationRetry, "2") })
	wait.Until(t, env.Limit, "the update is installed", func() (string, bool) {
		got := schemaDescription(t, s, "askeds.asked.test")
		return got, got == denied
	})
	untilSettled(t, s, p)
	remove(t, s, p)
}
