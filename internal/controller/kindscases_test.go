package controller_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// untilCreated creates a custom resource of a kind, and returns it.
func untilCreated(t *testing.T, s *testEnv, group, kind string) *unstructured.Unstructured {
	t.Helper()
	o := instance(group, kind)
	wait.Until(t, limit, kind+" of "+group+" can be created", func() (string, bool) {
		err := s.Client.Create(t.Context(), o)
		return fmt.Sprint(err), err == nil
	})
	return o
}

// checkKept checks that custom resources are the same objects as before.
func checkKept(t *testing.T, s *testEnv, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		now := instance(o.GroupVersionKind().Group, o.GetKind())
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil || now.GetUID() != o.GetUID() {
			t.Errorf("the %s of before is gone: %v", o.GetKind(), err)
		}
	}
}

// setPatterns changes what a policy activates.
func setPatterns(t *testing.T, s *testEnv, x *unstructured.Unstructured, patterns ...string) {
	t.Helper()
	env.Update(t, s.Env, x, func(x *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(x.Object, patterns, "spec", "activate")
	})
}

// setAnnotation changes an annotation of a Provider.
func setAnnotation(t *testing.T, s *testEnv, p *v1.Provider, key, value string) {
	t.Helper()
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[key] = value })
}

// untilReasons waits until a kind is active for these reasons.
func untilReasons(t *testing.T, s *testEnv, p *v1.Provider, crd string, want ...activation.Reason) {
	t.Helper()
	planning := newPlanner(t, s)
	wait.Until(t, limit, fmt.Sprintf("%s is active because of %v", crd, want), func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		kinds, err := planning.KindsOf(t.Context(), p)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(kinds.Reasons[crd]), slices.Equal(kinds.Reasons[crd], want)
	})
}

// With each form of content, a Provider with the capability has the kinds that a user or a policy activates, and one without it has all, also if an update loses the capability. No custom resource is lost.
func TestKindsOfEachCapabilityAndContent(t *testing.T) {
	kinds := []string{"Alpha", "Beta", "Gamma", "Delta"}
	const all = "alphas betas deltas gammas"
	for _, capability := range []string{"safe", "unsafe", "lost"} {
		for _, content := range []string{"crds", "mrds", "mixed"} {
			t.Run(capability+" "+content, func(t *testing.T) {
				s := sharedEnv(t)
				r := newRegistry(t)
				name := "combined-" + capability + "-" + content
				group := name + ".test"
				var offered []string
				for i, k := range kinds {
					if content == "mrds" || content == "mixed" && i%2 == 1 {
						offered = append(offered, mrd(group, k, "Inactive"))
					} else {
						offered = append(offered, managed(group, k))
					}
				}
				push := func(version string, isSafe bool) string {
					stream := provider(name, offered...)
					if isSafe {
						stream = safeProvider(name, offered...)
					}
					stream = strings.ReplaceAll(stream, "description: one", "description: "+version)
					ref, _ := r.push(t, "acme/"+name+":"+version, stream)
					return ref
				}
				activeIf := func(safe bool, want string) string {
					if safe {
						return want
					}
					return all
				}
				before, after := capability != "unsafe", capability == "safe"
				p := choosing(name, push("v1", before), "used")
				s.CreateTemporary(t, p)
				untilSettled(t, s, p)
				if got, want := activeKinds(t, s, group), activeIf(before, ""); got != want {
					t.Fatalf("the kinds %q are active before one is needed, want %q", got, want)
				}
				s.CreateTemporary(t, policy(name, "betas."+group))
				untilActive(t, s, group, activeIf(before, "betas"))
				setAnnotation(t, s, p, activation.AnnotationKinds, "used,alphas."+group)
				untilActive(t, s, group, activeIf(before, "alphas betas"))
				kept := []*unstructured.Unstructured{untilCreated(t, s, group, "Alpha"), untilCreated(t, s, group, "Beta")}
				upgradeTo(t, s, p, push("v2", after))
				if got, want := activeKinds(t, s, group), activeIf(after, "alphas betas"); got != want {
					t.Errorf("the kinds %q are active after an update, want %q", got, want)
				}
				for _, crd := range strings.Fields(activeKinds(t, s, group)) {
					if got := schemaDescription(t, s, crd+"."+group); got != "v2" {
						t.Errorf("%s has the schema %s", crd, got)
					}
				}
				checkKept(t, s, kept...)
			})
		}
	}
}

// A kind stays active for as long as one policy matches it, and without a request to deactivate it also after that. A
// policy that is malformed, or that is written without a change, has no effect.
func TestPoliciesThatChange(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const name, group = "changing", "changing.test"
	p := choosing(name, pushed(t, r, name, safeProvider(name, managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma"))), "policies")
	s.CreateTemporary(t, p)
	x, y := policy("changing-x", "a*."+group, "betas."+group), policy("changing-y", "bet?s."+group)
	s.CreateTemporary(t, x, y)
	untilActive(t, s, group, "alphas betas")
	untilSettled(t, s, p)
	untilReasons(t, s, p, "betas."+group, "policy/changing-x", "policy/changing-y")

	setPatterns(t, s, x, "betas."+group)
	untilReasons(t, s, p, "alphas."+group, activation.Kept)
	s.Delete(t, x)
	untilReasons(t, s, p, "betas."+group, "policy/changing-y")
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "alphas betas" {
		t.Errorf("the kinds %s are active", got)
	}

	// A policy that is applied again, and one that only gets a label, cause no write.
	shared.definitions.RLock()
	t.Cleanup(shared.definitions.RUnlock)
	const active = " Active True EstablishedManagedResource"
	eventually(t, "all kinds have their definitions", func() bool {
		return definitionsOf(t, s, group) == "alphas"+active+", betas"+active+", gammas Inactive "
	})
	s.audit.Reset(group)
	for _, label := range []string{"", "one"} {
		env.Update(t, s.Env, y, func(y *unstructured.Unstructured) { y.SetLabels(map[string]string{"label": label}) })
		env.Update(t, s.Env, y, func(*unstructured.Unstructured) {})
	}
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	if got := s.audit.Writes(group); len(got) > 0 {
		t.Errorf("a policy without a change causes the writes %v", got)
	}

	// A malformed pattern takes nothing from the others.
	setPatterns(t, s, y, "[b", "gammas."+group)
	untilActive(t, s, group, "alphas betas gammas")
	untilReasons(t, s, p, "betas."+group, activation.Kept)
	untilSettled(t, s, p)

	// On request, each kind goes with the last policy that matches it.
	setAnnotation(t, s, p, activation.AnnotationDeactivate, "*")
	untilActive(t, s, group, "gammas")
	z := policy("changing-z", "gamma?."+group)
	s.CreateTemporary(t, z)
	untilReasons(t, s, p, "gammas."+group, "policy/changing-y", "policy/changing-z")
	s.Delete(t, y)
	untilReasons(t, s, p, "gammas."+group, "policy/changing-z")
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "gammas" {
		t.Errorf("the kinds %q are active while a policy matches gammas", got)
	}
	s.Delete(t, z)
	untilActive(t, s, group, "")
}

// A kind whose objects the runtime converts is installed although the runtime has no replicas, and its objects are
// converted once the runtime serves.
func TestTheFirstActiveKindIsConverted(t *testing.T) {
	const name, group = "converts", "converts.test"
	s, k, r := newDeploymentEnv(t)
	stream := strings.NewReplacer(
		"metadata: {name: "+name+"}", "metadata: {name: "+name+"}\nspec: {capabilities: [SafeStart]}",
		"names: {", "names: {categories: [managed], ",
	).Replace(hook.Stream(name, group, "v1"))
	ref, digest := r.push(t, "kinds/converts:v1", stream)
	k.Fail(digest.String(), true)
	p := choosing(name, ref, "used")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "" {
		t.Fatalf("the kinds %s are active", got)
	}
	setAnnotation(t, s, p, activation.AnnotationKinds, "things."+group)
	untilActive(t, s, group, "things")
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "code 7")
	if v, m := configurations(t, s, name); len(v)+len(m) > 0 {
		t.Error("the webhooks of a runtime that does not run are called")
	}
	l := hook.Listen(t)
	program := hook.Serve(t, s.Client, controller.DefaultNamespace, name, l)
	hook.Route(t, s.Client, controller.DefaultNamespace, name, l.Addr().(*net.TCPAddr))
	restartPods(t, s, k, p, digest, false)
	untilSettled(t, s, p)
	untilConfigured(t, s, name, true)
	thing := hook.Thing(group, "v1", "good")
	wait.Until(t, limit, "an object can be created", func() (string, bool) {
		err := s.Client.Create(t.Context(), thing)
		return fmt.Sprint(err), err == nil
	})
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(hook.Thing(group, "v2", "").GroupVersionKind())
	if err := s.Client.List(t.Context(), all); err != nil || len(all.Items) != 1 || program.Converted.Load() == 0 {
		t.Errorf("%d objects, %d conversions, %v", len(all.Items), program.Converted.Load(), err)
	}
	remove(t, s, p)
}

// A kind whose CRD is still being deleted when it is activated is active once the deletion has ended. Until then, a
// condition of the package names what it waits for, and the condition Established of the policy is False.
func TestAKindIsActivatedWhileItsCRDIsDeleted(t *testing.T) {
	const finalizer = "xpkg.test/hold"
	// The manager deletes the CRD, which has a finalizer, or a user, while a custom resource has one.
	for _, by := range []string{"manager", "user"} {
		t.Run(by, func(t *testing.T) {
			s := sharedEnv(t)
			r := newRegistry(t)
			name := "held-by-" + by
			group := name + ".test"
			ref := pushed(t, r, name, safeProvider(name, managed(group, "Alpha"), managed(group, "Beta")))
			p, x, crd := choosing(name, ref, "betas."+group), policy(name, "alphas."+group), newCRD()
			crd.Name = "alphas." + group
			s.CreateTemporary(t, p, x)
			untilActive(t, s, group, "alphas betas")
			untilSettled(t, s, p)
			holder := client.Object(crd)
			if by == "user" {
				holder = untilCreated(t, s, group, "Alpha")
			}
			env.Update(t, s.Env, holder, func(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), finalizer)) })
			release := func(o client.Object) {
				o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == finalizer }))
			}
			t.Cleanup(func() {
				ctx := context.WithoutCancel(t.Context())
				if s.Client.Get(ctx, client.ObjectKeyFromObject(holder), holder) == nil {
					release(holder)
					_ = s.Client.Update(ctx, holder)
				}
			})
			if by == "user" {
				s.Delete(t, crd)
				untilDeleting(t, s, crd)
			} else {
				setPatterns(t, s, x, "none."+group)
				setAnnotation(t, s, p, activation.AnnotationDeactivate, "*")
				untilDeleting(t, s, crd)
				untilSettled(t, s, p)
				setPatterns(t, s, x, crd.Name)
			}
			s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, crd.Name+" is being deleted")
			untilEstablished := func(want string) {
				t.Helper()
				wait.Until(t, limit, "the policy is established: "+want, func() (string, bool) {
					if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil {
						return err.Error(), false
					}
					got := conditionOf(x, "Established")
					return got, strings.HasPrefix(got, want)
				})
			}
			untilEstablished("False")
			env.Update(t, s.Env, holder, release)
			untilEstablished("True")
			s.Create(t, instance(group, "Alpha"))
			untilSettled(t, s, p)
		})
	}
}

func untilDeleting(t *testing.T, s *testEnv, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	wait.Until(t, limit, crd.Name+" is being deleted", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)
		return fmt.Sprint(err), err == nil && crd.DeletionTimestamp != nil
	})
}

// A kind is deactivated although the runtime exits, and once the runtime can be described again if it cannot. The
// runtime that runs then was started after that.
func TestKindsAreDeactivatedWhileTheRuntimeIsDown(t *testing.T) {
	s, k, r := newDeploymentEnv(t)
	const name, group = "down", "down.test"
	ref, digest := r.push(t, "kinds/down:v1", safeProvider(name, managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma")))
	config := &v1beta1.DeploymentRuntimeConfig{}
	config.Name = name
	s.CreateTemporary(t, config)
	p := choosing(name, ref, "*."+group)
	p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: name}
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	restartPods(t, s, k, p, digest, true)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "code 7")
	deactivate := func(choice, deactivated string) {
		t.Helper()
		env.Update(t, s.Env, p, func(p *v1.Provider) {
			p.Annotations[activation.AnnotationKinds], p.Annotations[activation.AnnotationDeactivate] = choice, deactivated
		})
	}
	deactivate("policies", "gammas."+group)
	untilActive(t, s, group, "alphas betas")
	first := ""
	eventually(t, "the runtime is started again", func() bool { first = restartOf(t, s, p); return first != "" })
	restartPods(t, s, k, p, digest, false)
	untilSettled(t, s, p)

	s.Delete(t, config)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "RuntimeConfigNotFound")
	deactivate("policies", "betas."+group)
	waitReconciled(t, s.Env, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "RuntimeConfigNotFound")
	again := &v1beta1.DeploymentRuntimeConfig{}
	again.Name = name
	s.CreateTemporary(t, again)
	untilActive(t, s, group, "alphas")
	eventually(t, "the runtime is started once more", func() bool { return restartOf(t, s, p) != first })
	untilSettled(t, s, p)
	remove(t, s, p)
}

// A kind and its custom resources stay when what activated the kind is gone, over an update, a version that is rolled
// back, and the return to the former version.
func TestAKindOutlivesItsReasonAndVersions(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const name, group = "outlives", "outlives.test"
	config := crd(group, "Config", "one")
	push := func(version, config string) string {
		ref, _ := r.push(t, "acme/"+name+":"+version, strings.ReplaceAll(safeProvider(name, managed(group, "Alpha"),
			managed(group, "Beta"), managed(group, "Gamma"), config), "description: one", "description: "+version))
		return ref
	}
	first, second := push("v1", config), push("v2", config)
	p, x := choosing(name, first, "alphas."+group), policy(name, "betas."+group)
	s.CreateTemporary(t, p, x)
	untilActive(t, s, group, "alphas betas configs")
	untilSettled(t, s, p)
	kept := []*unstructured.Unstructured{untilCreated(t, s, group, "Alpha"), untilCreated(t, s, group, "Beta")}
	uids := func() (out []types.UID) {
		for _, kind := range []string{"alphas.", "betas."} {
			crd := newCRD()
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: kind + group}, crd); err != nil {
				t.Fatal(err)
			}
			out = append(out, crd.UID)
		}
		return out
	}
	before := uids()
	s.Delete(t, x)
	setAnnotation(t, s, p, activation.AnnotationKinds, "policies")
	check := func(version string) {
		t.Helper()
		if got := activeKinds(t, s, group); got != "alphas betas configs" {
			t.Errorf("with %s, the kinds %s are active", version, got)
		}
		if !slices.Equal(uids(), before) {
			t.Errorf("with %s, a kind is another one", version)
		}
		checkKept(t, s, kept...)
		wait.Until(t, limit, "the schema is that of "+version, func() (string, bool) {
			got := schemaDescription(t, s, "alphas."+group)
			return got, got == version
		})
	}
	upgradeTo(t, s, p, second)
	check("v2")
	dark := push("v3", strings.Replace(config, "served: true", "served: false", 1))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = dark })
	untilRolledBack(t, s, p)
	check("v2")
	upgradeTo(t, s, p, first)
	check("v1")
	for _, crd := range []string{"alphas.", "betas."} {
		untilReasons(t, s, p, crd+group, activation.Kept)
	}
}

// A deactivation that the API server denies is reported, is recorded once however often it is tried, and is made once
// it is allowed.
func TestADeniedDeactivationIsTriedAgain(t *testing.T) {
	s := newEnv(t)
	var denies atomic.Bool
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !denies.Load() || r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
				return next.RoundTrip(r)
			}
			w := httptest.NewRecorder()
			w.WriteHeader(http.StatusForbidden)
			return w.Result(), nil
		})
	})
	s.start(t)
	r := newRegistry(t)
	const name, group = "denied", "denied.test"
	ref := pushed(t, r, name, safeProvider(name, managed(group, "Alpha"), managed(group, "Beta")))
	p := choosing(name, ref, "*."+group)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	denies.Store(true)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Annotations[activation.AnnotationKinds], p.Annotations[activation.AnnotationDeactivate] = "policies", "*"
	})
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "delete CustomResourceDefinition")
	for i := range 3 {
		setAnnotation(t, s, p, v1.AnnotationRetry, fmt.Sprint(i))
		s.WaitPackage(t, p, "has tried again", func() bool { return p.Status.LastHandledRetry == fmt.Sprint(i) })
	}
	var records []env.Call
	for _, c := range s.audit.Calls(activeOf(t, s, p)) {
		if c.Method == http.MethodPatch && c.Subresource == "" && strings.Contains(c.Body, "xpkg.dev/deactivated") {
			records = append(records, c)
		}
	}
	if len(records) != 1 {
		t.Errorf("the deactivation was recorded %d times", len(records))
	}
	denies.Store(false)
	untilActive(t, s, group, "")
	untilSettled(t, s, p)
}

// A kind that is to be deactivated goes after its last custom resource, without another change.
func TestAKindGoesAfterItsLastCustomResource(t *testing.T) {
	s := newEnv(t)
	s.options.CountInterval = time.Second
	s.start(t)
	r := newRegistry(t)
	const name, group = "last", "last.test"
	p := choosing(name, pushed(t, r, name, safeProvider(name, managed(group, "Alpha"))), "alphas."+group)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	o := untilCreated(t, s, group, "Alpha")
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Annotations[activation.AnnotationKinds], p.Annotations[activation.AnnotationDeactivate] = "policies", "*"
	})
	untilReasons(t, s, p, "alphas."+group, activation.InUse)
	waitReconciled(t, s.Env, p)
	s.Delete(t, o)
	untilActive(t, s, group, "")
}

// A kind that a user activates by the state of its definition is active also if the manager reads the definition while
// it is busy with the package.
func TestAnActivationByADefinitionIsNotLost(t *testing.T) {
	s := newEnv(t)
	var holds atomic.Bool
	held, released := make(chan struct{}, 1), make(chan struct{})
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") &&
				holds.CompareAndSwap(true, false) {
				held <- struct{}{}
				<-released
			}
			return next.RoundTrip(r)
		})
	})
	s.start(t)
	r := newRegistry(t)
	const name, group = "wished", "wished.test"
	p := choosing(name, pushed(t, r, name, safeProvider(name, managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma"))), "policies")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	definition := func(kind string) *unstructured.Unstructured {
		d := &unstructured.Unstructured{}
		d.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
		d.SetKind("ManagedResourceDefinition")
		d.SetName(kind + "." + group)
		return d
	}
	exists := func() bool {
		d := definition("gammas")
		return s.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil
	}
	eventually(t, "the definitions exist", exists)
	holds.Store(true)
	setAnnotation(t, s, p, activation.AnnotationKinds, "betas."+group)
	<-held
	env.Update(t, s.Env, definition("alphas"), func(d *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(d.Object, "Active", "spec", "state")
	})
	s.Delete(t, definition("gammas"))
	eventually(t, "the manager has read the definitions", exists)
	close(released)
	untilActive(t, s, group, "alphas betas")
}
