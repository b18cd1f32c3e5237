package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// resourcesOf creates custom resources of a kind and returns a function that counts those that exist and are not being
// deleted.
func resourcesOf(t *testing.T, s *testEnv, kind schema.GroupVersionKind, n int) (count func() int) {
	t.Helper()
	for i := range n {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName(fmt.Sprintf("object-%d", i))
		wait.Until(t, limit, "an object is created", func() (string, bool) {
			err := s.Client.Create(t.Context(), o)
			return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
		})
	}
	return func() int {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.Client.List(t.Context(), list); err != nil {
			return 0
		}
		left := 0
		for _, o := range list.Items {
			if o.GetDeletionTimestamp() == nil {
				left++
			}
		}
		return left
	}
}

// answerDeletion sets the annotation that answers what happens to custom resources.
func answerDeletion(t *testing.T, s *testEnv, o client.Object, value string) {
	t.Helper()
	env.Update(t, s.Env, o, func(o client.Object) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1.AnnotationOnDelete] = value
		o.SetAnnotations(annotations)
	})
}

// Nothing of a deleted package with custom resources is deleted before a user answers what happens to them, however it
// is deleted, also if the manager restarts. The answers are carried out.
func TestADeletionWithCustomResourcesWaitsForAnAnswer(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
	} {
		t.Run(string(propagation), func(t *testing.T) {
			s := withExternalRuntimes(t)
			p := runningProvider(t, s, "answers", crd("answers.test", "Record", "one"), crd("answers.test", "Other", "one"))
			count := resourcesOf(t, s, schema.GroupVersionKind{Group: "answers.test", Version: "v1", Kind: "Record"}, 3)
			if err := s.Client.Delete(t.Context(), p, client.PropagationPolicy(propagation)); err != nil {
				t.Fatal(err)
			}
			held := func(parts ...string) {
				t.Helper()
				wait.Until(t, limit, "the deletion is held", func() (string, bool) {
					if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
						t.Fatalf("the package: %v", err)
					}
					ready := p.GetCondition(v1.TypeReady)
					isHeld := ready.Reason == v1.ReasonCustomResourcesExist
					for _, part := range parts {
						isHeld = isHeld && strings.Contains(ready.Message, part)
					}
					return ready.Message, isHeld
				})
				if n := count(); n != 3 {
					t.Fatalf("%d of 3 objects are left", n)
				}
				for _, rev := range s.Revisions(t, p) {
					if rev.GetDeletionTimestamp() != nil && propagation == metav1.DeletePropagationBackground {
						t.Errorf("the revision %s is being deleted", rev.GetName())
					}
				}
			}
			held("3 custom resources (records.answers.test: 3)", v1.AnnotationOnDelete+"=orphan", v1.AnnotationOnDelete+"=cascade=3")
			answerDeletion(t, s, p, "yes")
			held(`"yes" is neither orphan nor cascade=N`)
			answerDeletion(t, s, p, "cascade=2")
			held("more than the 2 of the annotation")
			answerDeletion(t, s, p, "cascade=3")
			s.WaitGone(t, p)
			for _, name := range []string{"records", "others"} {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				crd.Name = name + ".answers.test"
				s.WaitGone(t, crd)
			}
		})
	}
}

// The answer orphan deletes a package with its revisions and its runtime, and keeps the objects and all custom
// resources. The package can be installed again, and owns them again.
func TestAnOrphaningAnswerKeepsAllObjects(t *testing.T) {
	s := withExternalRuntimes(t)
	p := runningProvider(t, s, "keeps", crd("keeps.test", "Record", "one"))
	count := resourcesOf(t, s, schema.GroupVersionKind{Group: "keeps.test", Version: "v1", Kind: "Record"}, 2)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read := func() {
		t.Helper()
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "records.keeps.test"}, crd); err != nil {
			t.Fatal(err)
		}
	}
	read()
	uid := crd.UID
	answerDeletion(t, s, p, "orphan")
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.WaitGone(t, p)
	wait.Until(t, limit, "the revisions are deleted", func() (string, bool) {
		n := len(s.Revisions(t, p))
		return fmt.Sprint(n), n == 0
	})
	read()
	if crd.UID != uid || crd.DeletionTimestamp != nil || len(crd.OwnerReferences) > 0 || count() != 2 {
		t.Fatalf("the CRD has the owners %v and %d objects", crd.OwnerReferences, count())
	}
	again := env.NewProvider("keeps", p.Spec.Package)
	s.CreateTemporary(t, again)
	s.WaitCondition(t, again, v1.TypeHealthy, "Unknown", "")
	reportHealth(t, s, again, v1.RuntimeHealthy())
	untilSettled(t, s, again)
	if read(); crd.UID != uid || len(crd.OwnerReferences) != 1 || crd.OwnerReferences[0].UID != again.UID || count() != 2 {
		t.Errorf("after the install, the CRD has the owners %v and %d objects", crd.OwnerReferences, count())
	}
}

// Two packages that share a CRD and are deleted together delete it.
func TestPackagesThatAreDeletedTogetherLeaveNothing(t *testing.T) {
	s := withExternalRuntimes(t)
	p := runningProvider(t, s, "shares", crd("shares.test", "Record", "one"))
	other := env.NewProvider("another", "registry.example.com/another:v1")
	other.SetFinalizers([]string{"shares.test/held"})
	s.CreateTemporary(t, other)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "records.shares.test"
	env.Update(t, s.Env, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.OwnerReferences = append(crd.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: other.Name, UID: other.UID,
		})
	})
	s.Delete(t, other, p)
	s.WaitGone(t, crd)
	s.WaitGone(t, p)
}

// The API server denies administrators and the garbage collector the deletions that lose something, until an annotation
// of the object answers for that. The messages contain the commands that answer.
func TestTheGuardDeniesDeletionsThatLoseSomething(t *testing.T) {
	s := withExternalRuntimes(t)
	p := runningProvider(t, s, "guarded", crd("guarded.test", "Record", "one"))
	cfg := rest.CopyConfig(s.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:masters"}}
	alice := env.NewClient(t, cfg)
	cfg.Impersonate.UserName = "system:serviceaccount:kube-system:generic-garbage-collector"
	collector := env.NewClient(t, cfg)
	count := int64(412)
	wait.Until(t, limit, "the custom resources are counted", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		p.Status.CustomResources = &count
		err := s.Client.Status().Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "records.guarded.test"
	rev := s.Revisions(t, p)[0]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}}
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	dry := client.DryRunAll
	// denied reads the denial of a deletion, which a new policy makes after some milliseconds.
	denied := func(c client.Client, o client.Object, want string, options ...client.DeleteOption) {
		t.Helper()
		wait.Until(t, limit, "the deletion is denied", func() (string, bool) {
			err := c.Delete(t.Context(), o, append(options, dry)...)
			return fmt.Sprint(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), fence.RemovalsName) &&
				strings.Contains(err.Error(), want)
		})
	}
	permitted := func(c client.Client, o client.Object, options ...client.DeleteOption) {
		t.Helper()
		wait.Until(t, limit, "the deletion is permitted", func() (string, bool) {
			err := c.Delete(t.Context(), o, append(options, dry)...)
			return fmt.Sprint(err), err == nil
		})
	}
	const command = "kubectl annotate --overwrite "
	denied(alice, p, "has 412 custom resources")
	denied(alice, p, command+"providers.pkg.crossplane.io guarded "+v1.AnnotationOnDelete+"=orphan", foreground)
	denied(collector, p, command+"providers.pkg.crossplane.io guarded "+v1.AnnotationOnDelete+"=cascade=412")
	denied(alice, crd, "records.guarded.test belongs to Provider")
	denied(alice, crd, command+"customresourcedefinitions.apiextensions.k8s.io records.guarded.test "+v1.AnnotationOnDelete+"=cascade")
	denied(collector, crd, "belongs to Provider")
	denied(alice, rev, "is active")
	denied(alice, namespace, command+"namespace "+controller.DefaultNamespace)
	if err := alice.DeleteAllOf(t.Context(), &v1.Provider{}, dry); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion of all Providers: %v", err)
	}
	// The manager counts before it deletes, and another Provider has none.
	permitted(s.Client, p)
	permitted(s.Client, crd)
	permitted(collector, rev)
	permitted(alice, p, orphan)
	other := env.NewProvider("unguarded", "registry.example.com/unguarded:v1")
	s.CreateTemporary(t, other)
	permitted(alice, other)

	for value, isPermitted := range map[string]bool{
		"cascade=411": false, "cascade": false, "cascade=412": true, "cascade=99999": true, "orphan": true, "cascade=4120x": false,
	} {
		answerDeletion(t, s, p, value)
		if isPermitted {
			permitted(alice, p)
		} else {
			denied(alice, p, "412")
		}
	}
	for _, o := range []client.Object{crd, rev, namespace} {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		answerDeletion(t, s, o, "cascade")
		permitted(alice, o)
	}
	wait.Until(t, limit, "the other objects are not guarded", func() (string, bool) {
		o := crd.DeepCopy()
		o.ObjectMeta, o.Name = metav1.ObjectMeta{Name: "users.guarded.test"}, "users.guarded.test"
		o.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "users", Kind: "User"}
		if err := s.Client.Create(t.Context(), o); err != nil {
			return err.Error(), false
		}
		err := alice.Delete(t.Context(), o)
		return fmt.Sprint(err), err == nil
	})
}

// A manager without protection removes the guard, and deletes packages like any other object.
func TestAnUnprotectedManagerAsksNothing(t *testing.T) {
	s := withExternalRuntimes(t)
	s.start(t)()
	s.options.Unprotected = true
	p := runningProvider(t, s, "unprotected", crd("unprotected.test", "Record", "one"))
	policy, binding := fence.Removals(fence.Remover{}).Objects()
	s.WaitGone(t, policy)
	s.WaitGone(t, binding)
	resourcesOf(t, s, schema.GroupVersionKind{Group: "unprotected.test", Version: "v1", Kind: "Record"}, 2)
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.WaitGone(t, p)
}
