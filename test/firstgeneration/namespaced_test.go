package firstgeneration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen/setup"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

var definitionKind = schema.GroupVersionKind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}

// The users of a namespace install no CRDs: an administrator shares them first. Then each namespace has a runtime of
// its own, and all have the same version.
func TestPackageInstallNeedsSharedDefinitions(t *testing.T) {
	s := newSuite(t, nil)
	a := s.newNamespace(t, "shared-a")
	ref := s.publish(t, "shared", "v1.0.0", "Namespaced")
	in := newInstall(packagesv1alpha1.PackageInstallKind, a, "shared", ref)
	s.audit.Reset("")
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrNotAllowed.Name)
	for _, w := range s.audit.Writes("") {
		if !strings.Contains(w, "packageinstalls") && !strings.Contains(w, "events") && !strings.Contains(w, "lease") {
			t.Errorf("a refused PackageInstall causes the write %s", w)
		}
	}
	p := s.share(t, "shared", ref)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	d := s.deployment(t, a, "shared")
	if c := d.Spec.Template.Spec.Containers[0]; c.Name != manifests.Container ||
		!strings.HasPrefix(c.Image, ref+"@sha256:") {
		t.Errorf("the container is %s with %s", c.Name, c.Image)
	}
	if account := d.Spec.Template.Spec.ServiceAccountName; account != "shared" {
		t.Errorf("the ServiceAccount is %s", account)
	}
	if owner := metav1.GetControllerOf(d); owner == nil || owner.Kind != packagesv1alpha1.PackageKind {
		t.Errorf("the owner is %+v", owner)
	}
	central := &metav1.PartialObjectMetadataList{}
	central.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"})
	if err := s.Client.List(t.Context(), central, client.InNamespace(managerNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, d := range central.Items {
		if strings.HasPrefix(d.Name, "shared-") {
			t.Errorf("a shared Provider has the runtime %s", d.Name)
		}
	}

	t.Run("AnotherVersionIsRefused", func(t *testing.T) {
		b := s.newNamespace(t, "shared-b")
		other := newInstall(packagesv1alpha1.PackageInstallKind, b, "shared", s.publish(t, "shared", "v2.0.0", "Namespaced"))
		s.Create(t, other)
		s.waitFor(t, other, corev1.ConditionFalse, firstgen.ErrVersion.Name)
		if err := s.Client.Get(
			t.Context(), client.ObjectKeyFromObject(other), &packagesv1alpha1.Package{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("a refused PackageInstall has a record (%v)", err)
		}
	})
	t.Run("APlanNamesTheUsersOfTheVersion", func(t *testing.T) {
		second := s.publish(t, "shared", "v2.0.0", "Namespaced")
		code, stdout, stderr := command.Output(t, "plan", "update", p.Name, "v2.0.0", "--kubeconfig", cluster.Kubeconfig(t))
		if code != planner.ErrDependentsBroken.Class.Exit ||
			!strings.Contains(stdout, "packageinstall/"+a+"/shared"+"  needs ") ||
			!strings.Contains(stdout, "would be at v2.0.0") ||
			strings.Contains(stdout, "shared-b/shared") ||
			!strings.Contains(stderr, "set spec.package of packageinstall/"+a+"/shared to "+second) {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("ADeletionKeepsTheDefinitions", func(t *testing.T) {
		s.Delete(t, in)
		s.WaitGone(t, in)
		s.WaitGone(t, d)
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.DeletionTimestamp != nil {
			t.Errorf("the Provider is deleted: %v", err)
		}
	})
	t.Run("TheScopeClusterIsRefused", func(t *testing.T) {
		wide := s.publish(t, "wide", "v1.0.0", "Cluster")
		s.share(t, "wide", wide)
		in := newInstall(packagesv1alpha1.PackageInstallKind, a, "wide", wide)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrScope.Name)
	})
}

// A Package whose CRDs were deleted is not ready, and its controller does not run.
func TestPackageWithoutItsDefinitionsIsStopped(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "lost-team")
	p := s.share(t, "lost", s.publish(t, "lost", "v1.0.0", "Namespaced"))
	own := newPackage(team, "lost-own", "lost", p.Spec.Package)
	s.Create(t, own)
	s.waitFor(t, own, corev1.ConditionTrue, "Available")
	d := s.deployment(t, team, "lost-own")
	s.Delete(t, p)
	s.WaitGone(t, p)
	s.waitDefinitionGone(t, "things.lost.example.org")
	// The Package is checked once a minute, and when it changes. The served kinds are read at most once a second.
	touched := 0
	wait.Until(t, env.Limit, "the Package is not ready", func() (string, bool) {
		touched++
		env.Update(t, s.Env, own, func(p *packagesv1alpha1.Package) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, "touched", fmt.Sprint(touched))
		})
		ready := own.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v", ready), ready.Reason == packagesv1alpha1.ReasonCreating
	})
	s.WaitGone(t, d)
}

// When an administrator withdraws the sharing of a Provider, or deletes the Provider, the controllers of its
// PackageInstalls stop, whatever the objects name. They run again when it is shared again.
func TestWithdrawnSharingStopsTheControllersOfNamespaces(t *testing.T) {
	s := newSuite(t, nil)
	for name, tc := range map[string]struct {
		change func(*packagesv1alpha1.InstallSpec)
		// withdrawn and deleted are the reasons of the object after the sharing was withdrawn, and after the Provider was
		// deleted.
		withdrawn, deleted string
	}{
		"withdrawn-package": {nil, firstgen.ErrNotAllowed.Name, firstgen.ErrNotAllowed.Name},
		"withdrawn-kind": {
			func(spec *packagesv1alpha1.InstallSpec) {
				spec.Package, spec.CRD = "", "things.withdrawn-kind.example.org/v1"
			}, firstgen.ErrNotAllowed.Name, provide.ErrNoProvider.Name,
		},
		"withdrawn-invalid": {
			func(spec *packagesv1alpha1.InstallSpec) {
				spec.CRD = "things.withdrawn-invalid.example.org/v1"
			}, firstgen.ErrReference.Name, firstgen.ErrReference.Name,
		},
	} {
		t.Run(name, func(t *testing.T) {
			team := s.newNamespace(t, name+"-team")
			p := s.share(t, name, s.publish(t, name, "v1.0.0", "Namespaced"))
			in := newInstall(packagesv1alpha1.PackageInstallKind, team, name, p.Spec.Package)
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			change := func(change func(*packagesv1alpha1.InstallSpec)) {
				env.Update(
					t, s.Env, in.(*packagesv1alpha1.PackageInstall), func(in *packagesv1alpha1.PackageInstall) { change(&in.Spec) },
				)
			}
			if tc.change != nil {
				change(tc.change)
			}
			isInvalid := tc.withdrawn == firstgen.ErrReference.Name
			for _, isDeletion := range []bool{false, true} {
				if isInvalid {
					s.waitFor(t, in, corev1.ConditionFalse, tc.withdrawn)
				} else {
					s.waitFor(t, in, corev1.ConditionTrue, "Available")
				}
				record, d := s.record(t, in), s.deployment(t, team, name)
				if isDeletion {
					s.Delete(t, p)
					s.WaitGone(t, p)
				} else {
					env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations = nil })
				}
				s.WaitGone(t, record)
				s.WaitGone(t, d)
				// An invalid object has had the reason before.
				wait.Until(t, env.Limit, "the status does not name the record", func() (string, bool) {
					err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(in), in)
					return fmt.Sprintf("%+v, %v", in.InstallStatus().PackageRecord, err),
						err == nil && in.InstallStatus().PackageRecord == nil
				})
				s.waitFor(t, in, corev1.ConditionFalse, map[bool]string{false: tc.withdrawn, true: tc.deleted}[isDeletion])
				if message := in.GetCondition(v1.TypeReady).Message; !isDeletion && !isInvalid && !strings.Contains(
					message, "kubectl annotate providers.pkg.crossplane.io "+name+" "+revision.AnnotationNamespacedInstalls+"=",
				) {
					t.Errorf("the message names no remedy: %s", message)
				}
				if isDeletion || isInvalid {
					return
				}
				env.Update(t, s.Env, p, func(p *v1.Provider) {
					metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
				})
			}
		})
	}
}

// A pause does not keep the controller of a PackageInstall whose Provider is not shared any more, or is deleted.
func TestWithdrawnSharingStopsPausedInstallObjects(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	for name, withdraw := range map[string]func(t *testing.T, p *v1.Provider){
		"paused-withdrawn": func(t *testing.T, p *v1.Provider) {
			env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations = nil })
		},
		"paused-deleted": func(t *testing.T, p *v1.Provider) {
			s.Delete(t, p)
			s.WaitGone(t, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			team := s.newNamespace(t, name+"-team")
			ref := s.publish(t, name, "v1.0.0", "Namespaced")
			p := s.share(t, name, ref)
			in := newInstall(packagesv1alpha1.PackageInstallKind, team, name, ref).(*packagesv1alpha1.PackageInstall)
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			record, d := s.record(t, in), s.deployment(t, team, name)
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "crossplane:package:" + name + ":system"}}
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
				t.Fatal(err)
			}
			pause := func(o object, annotations map[string]string) {
				t.Helper()
				env.Update(t, s.Env, o, func(o object) { o.SetAnnotations(annotations) })
			}
			paused := map[string]string{v1.AnnotationPaused: "true"}
			pause(in, paused)
			pause(record, map[string]string{
				v1.AnnotationPaused: "true", state.AnnotationInstalledBy: record.Annotations[state.AnnotationInstalledBy],
			})
			withdraw(t, p)
			for _, o := range []client.Object{record, d, role} {
				s.WaitGone(t, o)
			}
			s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrNotAllowed.Name)
			if synced := in.GetCondition(v1.TypeSynced); synced.Reason != v1.ReasonPaused || in.Status.PackageRecord != nil {
				t.Errorf("the paused object has the condition %+v, and the record %+v", synced, in.Status.PackageRecord)
			}
			pause(in, nil)
			if name == "paused-deleted" {
				s.share(t, name, ref)
			} else {
				env.Update(t, s.Env, p, func(p *v1.Provider) {
					metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
				})
			}
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
		})
	}
}

// The controller of a PackageInstall for a kind that the Provider does not have any more stops when the sharing is
// withdrawn.
func TestWithdrawnSharingOfADroppedKind(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "dropped-team")
	p := s.share(t, "dropped", s.publish(t, "dropped", "v1.0.0", "Namespaced"))
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "dropped", "")
	in.InstallSpec().CRD = "things.dropped.example.org/v1"
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	record, d := s.record(t, in), s.deployment(t, team, "dropped")
	next := s.Push(
		t, "first/dropped", "v2.0.0",
		strings.NewReplacer("thing", "other", "Thing", "Other").Replace(content("dropped", "v2.0.0", "Namespaced")),
	)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	s.waitFor(t, in, corev1.ConditionFalse, provide.ErrNoProvider.Name)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Errorf("the controller of the objects that exist: %v", err)
	}
	env.Update(t, s.Env, p, func(p *v1.Provider) { delete(p.Annotations, revision.AnnotationNamespacedInstalls) })
	s.WaitGone(t, record)
	s.WaitGone(t, d)
}

// The manager does not share a Provider again whose sharing an administrator has withdrawn, also if it created the
// Provider.
func TestWithdrawnSharingOfAnAllowedRepository(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{firstgen.All}})
	})
	team := s.newNamespace(t, "revoked-team")
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "revoked", s.publish(t, "revoked", "v1.0.0", "Namespaced"))
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	record, d := s.record(t, in), s.deployment(t, team, "revoked")
	p := env.NewProvider(in.InstallStatus().Provider, "")
	env.Update(t, s.Env, p, func(p *v1.Provider) { delete(p.Annotations, revision.AnnotationNamespacedInstalls) })
	s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrNotAllowed.Name)
	s.WaitGone(t, record)
	s.WaitGone(t, d)
}

// A second Provider of the repository that is shared, and that has no CRDs because the first one has them, does not
// keep the controllers.
func TestWithdrawnSharingBesideASharedProviderWithoutDefinitions(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "second-team")
	first := s.share(t, "doubled", s.publish(t, "doubled", "v1.0.0", "Namespaced"))
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "doubled", first.Spec.Package)
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	record, d := s.record(t, in), s.deployment(t, team, "doubled")
	second := env.NewProvider("doubled-second", first.Spec.Package)
	second.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
	s.Create(t, second)
	s.WaitCondition(t, second, v1.TypeReady, corev1.ConditionFalse, "ForeignOwner")
	env.Update(t, s.Env, first, func(p *v1.Provider) { delete(p.Annotations, revision.AnnotationNamespacedInstalls) })
	s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrNotAllowed.Name)
	s.WaitGone(t, record)
	s.WaitGone(t, d)
	s.Delete(t, second)
	s.WaitGone(t, second)
}

// A Provider whose sharing starts loses its runtime, and one whose sharing ends gets it back.
func TestSharingStopsTheRuntimeOfAProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	p := env.NewProvider("central", s.publish(t, "central", "v1.0.0", "Namespaced"))
	s.Create(t, p)
	s.WaitReady(t, p)
	d := s.deployment(t, managerNamespace, p.Status.CurrentRevision)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
	})
	s.WaitGone(t, d)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations = nil })
	wait.Until(t, env.Limit, "the runtime is back", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d)
		return fmt.Sprint(err), err == nil && d.DeletionTimestamp == nil && d.Status.ReadyReplicas > 0
	})
}

// A record that a backup restored without its owner reference does not run as the Package of a user, and its install
// object adopts it.
func TestARecordWithoutItsOwnerIsAdopted(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "restored-team")
	s.share(t, "restored", s.publish(t, "restored", "v1.0.0", "Namespaced"))
	for _, in := range []packagesv1alpha1.Install{
		newInstall(packagesv1alpha1.PackageInstallKind, team, "restored", s.Registry+"/first/restored:v1.0.0"),
		newInstall(
			packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "restored-wide",
			s.publish(t, "restored-wide", "v1.0.0", "Cluster"),
		),
	} {
		before := in.DeepCopyObject().(packagesv1alpha1.Install)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		record := s.record(t, in)
		restored := &packagesv1alpha1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: record.Name, Annotations: record.Annotations},
			Spec:       record.Spec,
		}
		s.Delete(t, in)
		s.WaitGone(t, in)
		s.WaitGone(t, record)
		s.Create(t, restored)
		s.waitFor(t, restored, corev1.ConditionFalse, string(packagesv1alpha1.ReasonCreating))
		account := &corev1.ServiceAccount{}
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(restored), account); err == nil &&
			account.DeletionTimestamp == nil && metav1.IsControlledBy(account, restored) {
			t.Errorf("the record %s runs as a Package of a user", restored.Name)
		}
		s.Create(t, before)
		s.waitFor(t, before, corev1.ConditionTrue, "Available")
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(restored), restored); err != nil ||
			!metav1.IsControlledBy(restored, before) {
			t.Errorf("the owners of the record %s are %+v (%v)", restored.Name, restored.OwnerReferences, err)
		}
		if err := s.Client.Get(
			t.Context(), client.ObjectKey{Name: "crossplane:package:" + in.GetNamespace() + ":" + in.GetName() + ":system"},
			&rbacv1.ClusterRole{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("the record %s has a role in the whole cluster (%v)", restored.Name, err)
		}
	}
}

// A status that another client has changed is written again.
func TestAForeignStatusIsRepaired(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "status-team")
	p := s.share(t, "status", s.publish(t, "status", "v1.0.0", "Namespaced"))
	narrow := newInstall(packagesv1alpha1.PackageInstallKind, team, "status", p.Spec.Package)
	wide := newInstall(
		packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "status-wide",
		s.publish(t, "status-wide", "v1.0.0", "Cluster"),
	)
	for _, in := range []packagesv1alpha1.Install{narrow, wide} {
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		want := in.InstallStatus().DeepCopy()
		in.InstallStatus().Provider, in.InstallStatus().
			PackageRecord = "another", &packagesv1alpha1.ObjectReference{Namespace: "kube-system", Name: "another"}
		if err := s.Client.Status().Update(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		record := s.record(t, in)
		controller := *record.Status.ControllerRef
		record.Status.ControllerRef = &packagesv1alpha1.ObjectReference{Name: "another"}
		if err := s.Client.Status().Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, env.Limit, "the status is repaired", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(in), in)
			now, ref := in.InstallStatus(), s.record(t, in).Status.ControllerRef
			return fmt.Sprintf("%+v %+v %v", now, ref, err),
				err == nil && now.Provider == want.Provider && *now.PackageRecord == *want.PackageRecord && *ref == controller
		})
	}
}

// The controller of a Package that another system runs has the reported health. The system finds its image in the
// status, and its role is bound to its ServiceAccount.
func TestExternalControllerHasTheReportedHealth(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) { o.Runtimes = programs.Everywhere(programs.External) })
	team := s.newNamespace(t, "external-team")
	ref := s.publish(t, "external", "v1.0.0", "Namespaced")
	s.share(t, "external", ref)
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "external", ref)
	s.Create(t, in)
	s.waitFor(t, in, "", programs.ReasonNotReported)
	record := s.record(t, in)
	if !strings.HasPrefix(record.Status.RuntimeImage, ref+"@sha256:") {
		t.Errorf("the status has the image %q", record.Status.RuntimeImage)
	}
	binding := &rbacv1.RoleBinding{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Namespace: team, Name: "crossplane:package:external:system"}, binding,
	); err != nil || binding.Subjects[0].Name != "external" {
		t.Errorf("the role is bound to %v (%v)", binding.Subjects, err)
	}
	report := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": packagesv1alpha1.GroupVersion.String(), "kind": packagesv1alpha1.PackageKind,
		"metadata": map[string]any{"namespace": team, "name": "external"},
		"status": map[string]any{"conditionedStatus": map[string]any{"conditions": []any{map[string]any{
			"type": "RuntimeHealthy", "status": "True", "reason": "Running", "observedGeneration": record.Generation,
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}},
	}}
	err := s.Client.Status().Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(report), client.FieldOwner("my-runner"), client.ForceOwnership,
	)
	if err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
}

// An administrator can let the manager install the CRDs of some repositories.
func TestAllowedRepositoriesAreSharedAutomatically(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(s *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{
			s.Registry + "/first/auto",
		}})
	})
	a := s.newNamespace(t, "auto-a")
	in := newInstall(packagesv1alpha1.PackageInstallKind, a, "auto", s.publish(t, "auto", "v1.0.0", "Namespaced"))
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	other := newInstall(
		packagesv1alpha1.PackageInstallKind, a, "automatic", s.publish(t, "automatic", "v1.0.0", "Namespaced"),
	)
	s.Create(t, other)
	s.waitFor(t, other, corev1.ConditionFalse, firstgen.ErrNotAllowed.Name)

	t.Run("AnUninstallReportsThatTheProviderIsCreatedAgain", func(t *testing.T) {
		name := "provider/" + in.InstallStatus().Provider
		code, stdout, stderr := command.Output(
			t, "uninstall", name, "--yes", "--wait", "60s", "--kubeconfig", cluster.Kubeconfig(t),
		)
		if code != 9 || !strings.Contains(stderr, "PackageRecreated") ||
			!strings.Contains(stderr, "xpkg plan uninstall "+name) {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		if _, stdout, stderr := command.Output(
			t, "plan", "uninstall", name, "--kubeconfig", cluster.Kubeconfig(t),
		); !strings.Contains(stdout, a+"/auto") {
			t.Errorf("the plan does not name the PackageInstall:\n%s%s", stdout, stderr)
		}
	})
}

// Names that are longer than labels are refused before anything is written, except for those of ClusterPackageInstalls,
// whose Providers have shorter names.
func TestLongNamesOfInstallObjects(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "long-team")
	p := s.share(t, "long", s.publish(t, "long", "v1.0.0", "Namespaced"))
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "install-"+strings.Repeat("x", 92), p.Spec.Package)
	own := newPackage(team, "package-"+strings.Repeat("x", 92), "long", p.Spec.Package)
	s.Create(t, in, own)
	for _, o := range []packagesv1alpha1.Object{in, own} {
		s.waitFor(t, o, corev1.ConditionFalse, revision.ErrNameTooLong.Name)
		account := &corev1.ServiceAccount{}
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), account); !apierrors.IsNotFound(err) {
			t.Errorf("a refused object has a ServiceAccount (%v)", err)
		}
	}
	wide := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "wide-"+
		strings.Repeat("x", 248), s.publish(t, "longwide", "v1.0.0", "Cluster"))
	s.Create(t, wide)
	s.waitFor(t, wide, corev1.ConditionTrue, "Available")
}

// The Provider that the manager created for a PackageInstall and that cannot be installed is deleted with the last of
// its PackageInstalls: the users of a namespace cannot delete it. One that was installed stays.
func TestUnusedProviderThatWasNeverInstalledIsDeleted(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{firstgen.All}})
	})
	team := s.newNamespace(t, "unused-team")
	requires := func(name, kind string) string {
		return s.Push(
			t, "first/"+name, "v1.0.0",
			strings.Replace(content(name, "v1.0.0", "Namespaced"), "spec:\n", "spec:\n  dependsOn:\n  - crd: '"+kind+"'\n", 1),
		)
	}
	unmet := requires("unused", "missings.absent.example.org/v1")
	first := newInstall(packagesv1alpha1.PackageInstallKind, team, "unused-first", unmet)
	second := newInstall(packagesv1alpha1.PackageInstallKind, team, "unused-second", unmet)
	for _, in := range []packagesv1alpha1.Install{first, second} {
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, provide.ErrNoProvider.Name)
	}
	p := env.NewProvider(first.InstallStatus().Provider, "")
	s.Delete(t, first)
	s.WaitGone(t, first)
	// The second one uses another package.
	next := s.publish(t, "unused-next", "v1.0.0", "Namespaced")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.DeletionTimestamp != nil {
		t.Errorf("the Provider of the second object is deleted (%v)", err)
	}
	env.Update(
		t, s.Env, second.(*packagesv1alpha1.PackageInstall),
		func(in *packagesv1alpha1.PackageInstall) { in.Spec.Package = next },
	)
	s.WaitGone(t, p)
	s.waitFor(t, second, corev1.ConditionTrue, "Available")
	kept := env.NewProvider(second.InstallStatus().Provider, "")
	s.Delete(t, second)
	s.WaitGone(t, second)
	third := newInstall(packagesv1alpha1.PackageInstallKind, team, "unused-third", unmet)
	s.Create(t, third)
	s.waitFor(t, third, corev1.ConditionFalse, provide.ErrNoProvider.Name)
	again := env.NewProvider(third.InstallStatus().Provider, "")
	s.Delete(t, third)
	s.WaitGone(t, again)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil ||
		kept.DeletionTimestamp != nil {
		t.Errorf("a Provider with CRDs is deleted (%v)", err)
	}
}

// Repositories whose names differ only in separators have their own Providers.
func TestRepositoriesWithSimilarNamesHaveTheirOwnProviders(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{firstgen.All}})
	})
	team := s.newNamespace(t, "similar-team")
	providers := map[string]bool{}
	for name, repository := range map[string]string{"similar-a": "similar/un", "similar-b": "similar-un"} {
		in := newInstall(
			packagesv1alpha1.PackageInstallKind, team, name,
			s.Push(t, repository, "v1.0.0", content(name, "v1.0.0", "Namespaced")),
		)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		providers[in.InstallStatus().Provider] = true
	}
	if len(providers) != 2 {
		t.Errorf("the Providers are %v", providers)
	}
}

// A refused PackageInstall leaves no Provider, which its users could not delete.
func TestRefusedPackageInstallLeavesNoProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{firstgen.All}})
	})
	team := s.newNamespace(t, "refused-team")
	held := newInstall(
		packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "holder",
		s.Push(t, "first/holder", "v1.0.0", content("contested", "v1.0.0", "Namespaced")),
	)
	s.Create(t, held)
	s.waitFor(t, held, corev1.ConditionTrue, "Available")
	for name, tc := range map[string]struct{ ref, code string }{
		"refused-scope": {s.publish(t, "refused-scope", "v1.0.0", "Cluster"), firstgen.ErrScope.Name},
		"refused-required": {s.Push(t,
			"first/refused-required", "v1.0.0", strings.Replace(content("refused-required", "v1.0.0", "Namespaced"), "spec:\n",
				"spec:\n  dependsOn:\n  - provider: "+
					strings.TrimSuffix(s.publish(t, "refused-wide", "v1.0.0", "Cluster"), ":v1.0.0")+
					"\n    version: '>=v1.0.0'\n", 1)), firstgen.ErrNotAllowed.Name},
		"refused-contested": {
			s.Push(t, "first/refused-contested", "v1.0.0", content("contested", "v1.0.0", "Namespaced")),
			firstgen.ErrNotAllowed.Name,
		},
	} {
		in := newInstall(packagesv1alpha1.PackageInstallKind, team, name, tc.ref)
		s.audit.Reset("")
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, tc.code)
		for _, w := range s.audit.Writes("") {
			if strings.Contains(w, "providers") {
				t.Errorf("%s causes the write %s", name, w)
			}
		}
	}
}

// A shared Provider has no runtime, so a package with a webhook cannot be shared: nothing of it is written.
func TestPackageWithWebhookIsNotShared(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(s *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{
			s.Registry + "/first/converted-auto",
		}})
	})
	team := s.newNamespace(t, "converted-team")
	publish := func(name string) string {
		return s.Push(t, "first/"+name, "v1.0.0", strings.Replace(content(name, "v1.0.0", "Namespaced"), "  scope: Namespaced\n", `  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.org/convert"}}}
`, 1))
	}
	ref := publish("converted")
	wide := env.NewProvider("converted", ref)
	s.Create(t, wide)
	s.WaitReady(t, wide)
	shared := env.NewProvider("converted-shared", publish("converted-shared"))
	shared.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
	s.audit.Reset("")
	s.Create(t, shared)
	s.waitFor(t, shared, corev1.ConditionFalse, revision.ErrSharedWebhook.Name)
	for name, ref := range map[string]string{
		"auto": publish("converted-auto"), "wide": ref, "shared": shared.Spec.Package,
	} {
		in := newInstall(packagesv1alpha1.PackageInstallKind, team, name, ref)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, revision.ErrSharedWebhook.Name)
		if message := in.GetCondition(v1.TypeReady).Message; !strings.Contains(message, "with a ClusterPackageInstall") {
			t.Errorf("the message of %s names no remedy: %s", name, message)
		}
	}
	for _, w := range s.audit.Writes("") {
		if strings.Contains(w, "customresourcedefinitions") || strings.Contains(w, "providerrevisions") ||
			strings.Contains(w, "roles") || strings.Contains(w, "POST") && strings.Contains(w, "providers") {
			t.Errorf("a refused package causes the write %s", w)
		}
	}
	env.Update(t, s.Env, wide, func(p *v1.Provider) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
	})
	s.waitFor(t, wide, corev1.ConditionFalse, revision.ErrSharedWebhook.Name)
	if d := s.deployment(t, managerNamespace, wide.Status.CurrentRevision); d.DeletionTimestamp != nil {
		t.Error("a Provider that cannot be shared has lost its runtime")
	}
	code, stdout, stderr := command.Output(
		t, "plan", "update", "provider/converted", ref, "--kubeconfig", cluster.Kubeconfig(t),
	)
	if code != 4 || !strings.Contains(stderr, revision.ErrSharedWebhook.Name) {
		t.Errorf("a plan ends with exit code %d\n%s%s", code, stdout, stderr)
	}

	t.Run("WebhookConfigurations", func(t *testing.T) {
		validated := s.Push(t, "first/validated", "v1.0.0", content("validated", "v1.0.0", "Namespaced")+`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validated}
webhooks:
- name: things.validated.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {path: /validate}}
  rules: [{apiGroups: [validated.example.org], apiVersions: [v1], resources: [things], operations: ["*"]}]
`)
		p := env.NewProvider("validated", validated)
		p.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
		s.Create(t, p)
		s.waitFor(t, p, corev1.ConditionFalse, revision.ErrSharedWebhook.Name)
		s.waitDefinitionGone(t, "things.validated.example.org")
	})
}

// A version of a shared Provider that is refused does not end the controllers of namespaces that have the installed
// version, and is not the version in conflicts.
func TestRefusedVersionOfASharedProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "refusal-team")
	first := s.publish(t, "refusal", "v1.0.0", "Namespaced")
	p := s.share(t, "refusal", first)
	in := newInstall(packagesv1alpha1.PackageInstallKind, team, "refusal", first)
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	refused := s.Push(t, "first/refusal", "v2.0.0", strings.Replace(
		content("refusal", "v2.0.0", "Namespaced"), "spec:\n",
		"spec:\n  dependsOn:\n  - crd: missings.absent.example.org/v1\n", 1,
	))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = refused })
	s.waitFor(t, in, corev1.ConditionFalse, provide.ErrNoProvider.Name)
	s.deployment(t, team, "refusal")
	other := newInstall(
		packagesv1alpha1.PackageInstallKind, team, "refusal-other", s.publish(t, "refusal", "v3.0.0", "Namespaced"),
	)
	s.Create(t, other)
	s.waitFor(t, other, corev1.ConditionFalse, firstgen.ErrVersion.Name)
	if message := other.GetCondition(v1.TypeReady).Message; !strings.Contains(message, "has the CRDs of v1.0.0") ||
		!strings.Contains(message, "Set spec.package to "+first) {
		t.Errorf("the message is %s", message)
	}
}

// An install object with the name of a Package of a user is refused before anything is installed.
func TestInstallBesideAPackageOfAUserInstallsNothing(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, NamespacedPackages: []string{firstgen.All}})
	})
	team := s.newNamespace(t, "beside-team")
	s.audit.Reset("")
	for name, in := range map[string]packagesv1alpha1.Install{
		"beside": newInstall(
			packagesv1alpha1.PackageInstallKind, team, "beside", s.publish(t, "beside", "v1.0.0", "Namespaced"),
		),
		"beside-wide": newInstall(
			packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "beside-wide",
			s.publish(t, "beside-wide", "v1.0.0", "Cluster"),
		),
	} {
		s.Create(t, newPackage(in.GetNamespace(), name, "absent", in.InstallSpec().Package))
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrRecordExists.Name)
	}
	for _, w := range s.audit.Writes("") {
		if strings.Contains(w, "provider") || strings.Contains(w, "customresourcedefinitions") {
			t.Errorf("a refused install object causes the write %s", w)
		}
	}
}

// The controller of a Package with the scope Cluster stops, and loses its permissions, when its namespace is not
// accepted any more.
func TestWithdrawnNamespaceStopsItsClusterControllers(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	const team = "withdrawn-admins"
	s := newSuite(t, func(_ *suite, o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, ClusterNamespaces: []string{team}})
	})
	s.newNamespace(t, team)
	ref := s.publish(t, "withdrawn", "v1.0.0", "Cluster")
	provider := env.NewProvider("withdrawn", ref)
	s.Create(t, provider)
	s.WaitReady(t, provider)
	p := newPackage(team, "wide", "withdrawn", ref)
	p.Spec.PermissionScope = "Cluster"
	s.Create(t, p)
	s.waitFor(t, p, corev1.ConditionTrue, "Available")
	role := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "crossplane:package:" + team + ":wide:system"}}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	d := s.deployment(t, team, "wide")
	// A pause does not keep it.
	env.Update(t, s.Env, p, func(p *packagesv1alpha1.Package) {
		p.Annotations = map[string]string{
			v1.AnnotationPaused: "true",
		}
	})
	s.restart(t, func(o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, ClusterNamespaces: nil})
	})
	s.waitFor(t, p, corev1.ConditionFalse, firstgen.ErrNamespace.Name)
	s.WaitGone(t, role)
	s.WaitGone(t, d)
	env.Update(t, s.Env, p, func(p *packagesv1alpha1.Package) { p.Annotations = nil })
	s.restart(t, func(o *controller.Options) {
		o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true, ClusterNamespaces: []string{team}})
	})
	s.waitFor(t, p, corev1.ConditionTrue, "Available")
}

// The runtime of a namespace, with its own identity, reaches nothing outside of its namespace.
func TestNamespacesCannotReachEachOther(t *testing.T) {
	s := newSuite(t, nil)
	a, b := s.newNamespace(t, "isolated-a"), s.newNamespace(t, "isolated-b")
	ref := s.publish(t, "isolated", "v1.0.0", "Namespaced")
	s.share(t, "isolated", ref)
	for _, namespace := range []string{a, b} {
		in := newInstall(packagesv1alpha1.PackageInstallKind, namespace, "isolated", ref)
		in.InstallSpec().
			ServiceAccount = &packagesv1alpha1.ServiceAccountOptions{Annotations: map[string]string{"iam": "special"}}
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		checkAccount(t, s.record(t, in))
		s.Create(
			t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private"}},
			thing("isolated", namespace, "mine"),
		)
	}
	runtimeA := env.NewClient(t, s.ServiceAccount(t, a, "isolated"))
	if err := runtimeA.Get(t.Context(), client.ObjectKey{Namespace: a, Name: "private"}, &corev1.Secret{}); err != nil {
		t.Errorf("a runtime cannot read the Secrets of its namespace: %v", err)
	}
	if err := runtimeA.Get(
		t.Context(), client.ObjectKey{Namespace: a, Name: "mine"}, thing("isolated", a, "mine"),
	); err != nil {
		t.Errorf("a runtime cannot read the custom resources of its namespace: %v", err)
	}
	for _, namespace := range []string{b, managerNamespace, metav1.NamespaceSystem, ""} {
		for _, resource := range []schema.GroupResource{
			{Resource: "secrets"}, {Resource: "configmaps"}, {Resource: "pods"}, {Resource: "serviceaccounts"},
			{Group: "apps", Resource: "deployments"},
			{Group: "isolated.example.org", Resource: "things"}, {Group: rbacv1.GroupName, Resource: "roles"},
			{Group: rbacv1.GroupName, Resource: "rolebindings"},
			{Group: packagesv1alpha1.Group, Resource: "packageinstalls"},
			{Group: packagesv1alpha1.Group, Resource: "clusterpackageinstalls"},
			{Group: packagesv1alpha1.Group, Resource: "packages"},
			{Group: "pkg.crossplane.io", Resource: "providers"},
			{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		} {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
				review := &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: resource.Group, Resource: resource.Resource, Verb: verb,
					}}}
				if err := runtimeA.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed {
					t.Errorf("the runtime of %s may %s %s in %q", a, verb, resource, namespace)
				}
			}
		}
	}
	if err := runtimeA.Get(
		t.Context(), client.ObjectKey{Namespace: b, Name: "private"}, &corev1.Secret{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("the runtime of %s reads a Secret of %s: %v", a, b, err)
	}
	if err := runtimeA.Delete(t.Context(), thing("isolated", b, "mine")); !apierrors.IsForbidden(err) {
		t.Errorf("the runtime of %s deletes a custom resource of %s: %v", a, b, err)
	}
}

// A user with permissions in one namespace lists and describes the objects of the namespace. The packages that they use
// belong to the whole cluster, and are named in a note.
func TestUsersOfANamespaceSeeTheirObjects(t *testing.T) {
	s := newSuite(t, nil)
	team, other := s.newNamespace(t, "seen-team"), s.newNamespace(t, "unseen-team")
	ref := s.publish(t, "seen", "v1.0.0", "Namespaced")
	s.share(t, "seen", ref)
	for _, namespace := range []string{team, other} {
		in := newInstall(packagesv1alpha1.PackageInstallKind, namespace, "seen", ref)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
	}
	grant := func(user string, resources ...string) (kubeconfig string) {
		t.Helper()
		meta := metav1.ObjectMeta{Namespace: team, Name: user}
		s.Create(t, &corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{packagesv1alpha1.Group}, Resources: resources, Verbs: []string{"get", "list", "watch"}},
		}}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: team, Name: user}},
		})
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(clientcmdapi.Config{
			Clusters: map[string]*clientcmdapi.Cluster{"a": {
				Server: s.Config.Host, CertificateAuthorityData: s.Config.CAData, CertificateAuthority: s.Config.CAFile,
			}},
			AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {Token: s.Token(t, team, user)}},
			Contexts:  map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}}, CurrentContext: "a",
		}, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s.publish(t, "seen", "v2.0.0", "Namespaced")
	all, some, none := grant("all", "packageinstalls", "clusterpackageinstalls", "packages"),
		grant("some", "packageinstalls"), grant("none", "stacks")
	const name, note = "packageinstall/seen-team/seen",
		"note: the package that packageinstall/seen-team/seen uses is not shown: "
	for _, tc := range []struct {
		kubeconfig, command string
		code                int
		// stdout and stderr are parts of the output. An empty stderr means none.
		stdout, stderr []string
	}{
		{all, "list -n " +
			team, 0, []string{name + "   True        True      v1.0.0    " + strings.TrimSuffix(ref, ":v1.0.0")}, nil},
		{all, "list -n " + team + " -o name", 0, []string{"packageinstall.packages.crossplane.io/seen"}, nil},
		{all, "list -n " + team + " -o wide", 0, []string{name}, []string{"note: the columns of the packages are empty: "}},
		{some, "list -n " + team, 0, []string{name}, []string{"note: the list is not complete: "}},
		{all, "list -n " + other, 6, nil, []string{"error: Forbidden: "}},
		{none, "list -n " + team, 6, nil, []string{"error: Forbidden: "}},
		{all, "list", 6, nil, []string{"error: Forbidden: ", "With permissions in one namespace, name it with --namespace."}},
		{all, "describe " + name, 0, []string{
			"Package:      " + ref, "Title of seen", "Ready=True Available", "Thing of seen.example.org/v1",
		}, []string{note}},
		{some, "describe " + name, 0, []string{"Package:      " + ref, "Ready=True Available"}, []string{note}},
		{all, "describe packageinstall/unseen-team/seen", 6, nil, []string{"error: Forbidden: "}},
		{all, "describe seen", 6, nil, []string{"error: Forbidden: "}},
		{all, "tree " + name, 0, []string{name + "  v1.0.0  Healthy=True", "1 CustomResourceDefinition"}, []string{note}},
		{all, "tree " + name + " -o json", 0, []string{`"kind": "PackageInstall"`}, []string{note}},
		{all, "logs " + name, 13, nil, []string{"kubectl logs deployment/seen --namespace " + team}},
		{cluster.Kubeconfig(t), "tree " +
			name, 0, []string{"provider/seen  v1.0.0  Healthy=True", "used by PackageInstall seen-team/seen"}, nil},
		{cluster.Kubeconfig(t), "plan update seen v2.0.0 --cache-dir " + t.TempDir(), 9, []string{
			"breaks", "packageinstall/seen-team/seen    needs", "packageinstall/unseen-team/seen  needs",
		}, []string{"DependentsBroken"}},
		{cluster.Kubeconfig(t), "list -n " + team, 0, []string{name + "   True"}, nil},
	} {
		code, stdout, stderr := command.Output(t, append(strings.Fields(tc.command), "--kubeconfig", tc.kubeconfig)...)
		isOther := func(text string, parts []string) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
		}
		if strings.Contains(stdout, "permissions of the runtime") {
			t.Errorf("%s: a shared Provider has no runtime, and the plan lists permissions:\n%s", tc.command, stdout)
		}
		if code != tc.code || isOther(stdout, tc.stdout) || isOther(stderr, tc.stderr) || tc.stderr == nil && stderr != "" ||
			tc.code == 0 && strings.Count(stderr, "\n") != len(tc.stderr) {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tc.command, code, tc.code, stdout, stderr)
		}
	}
}

// thing returns a custom resource of a package.
func thing(name, namespace, object string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: name + ".example.org", Version: "v1", Kind: "Thing"})
	u.SetNamespace(namespace)
	u.SetName(object)
	return u
}

// newPackage returns a Package of a user for the kind Thing of a package, with a controller.
func newPackage(namespace, name, group, image string) *packagesv1alpha1.Package {
	p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: group + ".example.org/v1", Kind: "Thing"}}
	p.Spec.Controller.Deployment = &packagesv1alpha1.ControllerDeployment{Name: name, Spec: runtime.RawExtension{
		Raw: []byte(`{"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"serviceAccountName": "default", "containers": [{"name": "main", "image": "` +
			image + `", "env": [{"name": "A", "value": "b"}]}]}}}`),
	}}
	return p
}

// A Package that a user creates runs its controller with permissions for its CRDs in its namespace, and with nothing
// else.
func TestPackagesOfUsersRunTheirControllers(t *testing.T) {
	s := newSuite(t, nil)
	team := s.newNamespace(t, "users-team")
	ref := s.publish(t, "users", "v1.0.0", "Cluster")
	provider := env.NewProvider("users", ref)
	s.Create(t, provider)
	s.WaitReady(t, provider)
	p := newPackage(team, "own", "users", ref)
	s.Create(t, p)
	s.waitFor(t, p, corev1.ConditionTrue, "Available")
	d := s.deployment(t, team, "own")
	if pod := d.Spec.Template.Spec; pod.ServiceAccountName != "own" || pod.Containers[0].Env[0].Value != "b" ||
		!strings.Contains(pod.Containers[0].Image, "@sha256:") {
		t.Errorf("the pod is %+v", pod)
	}
	role := &rbacv1.Role{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Namespace: team, Name: "crossplane:package:own:system"}, role,
	); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return r.APIGroups[0] == "users.example.org" && slices.Contains(r.Resources, "things/status")
	}) {
		t.Errorf("the rules are %+v", role.Rules)
	}

	for name, tc := range map[string]struct {
		change func(p *packagesv1alpha1.Package)
		code   string
	}{
		"cluster": {func(p *packagesv1alpha1.Package) { p.Spec.PermissionScope = "Cluster" }, firstgen.ErrNamespace.Name},
		"roles": {func(p *packagesv1alpha1.Package) {
			p.Spec.Permissions.Rules = []rbacv1.PolicyRule{{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"*"},
			}}
		}, firstgen.ErrPermissions.Name},
		"pods": {func(p *packagesv1alpha1.Package) {
			p.Spec.Permissions.Rules = []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"},
			}}
		}, firstgen.ErrPermissions.Name},
		"everything": {func(p *packagesv1alpha1.Package) {
			p.Spec.Permissions.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{
				"*",
			}}}
		}, firstgen.ErrPermissions.Name},
		"depends": {func(p *packagesv1alpha1.Package) {
			p.Spec.DependsOn = []packagesv1alpha1.InstallSpec{{CRD: "*.pkg.crossplane.io/v1"}}
		}, firstgen.ErrPermissions.Name},
		"first": {func(p *packagesv1alpha1.Package) {
			p.Spec.DependsOn = []packagesv1alpha1.InstallSpec{{CRD: "*.packages.crossplane.io/v1alpha1"}}
		}, firstgen.ErrPermissions.Name},
		"operators": {func(p *packagesv1alpha1.Package) {
			p.Spec.DependsOn = []packagesv1alpha1.InstallSpec{{CRD: "subscriptions.operators.coreos.com/v1alpha1"}}
		}, firstgen.ErrPermissions.Name},
		"manifests": {func(p *packagesv1alpha1.Package) {
			p.Spec.DependsOn = []packagesv1alpha1.InstallSpec{{CRD: "*.kubernetes.m.crossplane.io/v1alpha1"}}
		}, firstgen.ErrPermissions.Name},
		"builtin": {func(p *packagesv1alpha1.Package) {
			p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "apps/v1", Kind: "Deployment"}}
		}, "ReservedDefinition"},
		"privileged": {func(p *packagesv1alpha1.Package) {
			p.Spec.Controller.Deployment.Spec.Raw = []byte(
				`{"template": {"spec": {"hostNetwork": true, "containers": [{"name": "main", "image": "` + ref + `"}]}}}`,
			)
		}, "RuntimePrivileges"},
		"default": {func(p *packagesv1alpha1.Package) { p.Name = "default" }, deployment.ErrNameConflict.Name},
		"garbage": {func(p *packagesv1alpha1.Package) {
			p.Spec.Controller.Deployment.Spec.Raw = []byte(`{"replicas": "many", "template": []}`)
		}, firstgen.ErrController.Name},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPackage(team, "own-"+name, "users", ref)
			tc.change(p)
			s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "default"}})
			s.Create(t, p)
			s.waitFor(t, p, corev1.ConditionFalse, tc.code)
			role := &rbacv1.Role{}
			if err := s.Client.Get(
				t.Context(), client.ObjectKey{Namespace: team, Name: "crossplane:package:" + p.Name + ":system"}, role,
			); !apierrors.IsNotFound(err) {
				t.Errorf("a refused Package has a role (%v)", err)
			}
		})
	}
	t.Run("AnnotationsOfTheServiceAccount", func(t *testing.T) {
		p := newPackage(team, "own-account", "users", ref)
		p.Spec.ServiceAccount = &packagesv1alpha1.ServiceAccountOptions{Annotations: map[string]string{"iam": "special"}}
		p.Spec.Controller.ServiceAccount = &packagesv1alpha1.ServiceAccountOptions{Annotations: map[string]string{
			"iam": "earlier", "earlier": "true",
		}}
		s.Create(t, p)
		s.waitFor(t, p, corev1.ConditionTrue, "Available")
		account := &corev1.ServiceAccount{}
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), account); err != nil ||
			account.Annotations["iam"] != "special" || account.Annotations["earlier"] != "true" {
			t.Errorf("the ServiceAccount has the annotations %v (%v)", account.Annotations, err)
		}
		env.Update(t, s.Env, p, func(p *packagesv1alpha1.Package) {
			p.Spec.ServiceAccount, p.Spec.Controller.ServiceAccount = nil, nil
		})
		s.waitFor(t, p, corev1.ConditionTrue, "Available")
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), account); err != nil ||
			account.Annotations["iam"] != "" {
			t.Errorf("removed annotations stay: %v (%v)", account.Annotations, err)
		}
	})
	t.Run("WithoutAControllerNoPermissionsStay", func(t *testing.T) {
		for _, tc := range []struct {
			namespace, scope string
			change           func(p *packagesv1alpha1.Package)
			code             string
		}{
			{team, "Namespaced", func(p *packagesv1alpha1.Package) { p.Spec.Controller.Deployment = nil }, "Available"},
			{managerNamespace, "Cluster", func(p *packagesv1alpha1.Package) { p.Spec.Controller.Deployment = nil }, "Available"},
			{team, "Namespaced", func(p *packagesv1alpha1.Package) {
				p.Spec.PermissionScope = "Cluster"
			}, firstgen.ErrNamespace.Name},
			{team, "Namespaced", func(p *packagesv1alpha1.Package) { p.Spec.CRDs[0].Kind = "Absent" }, "Creating"},
		} {
			p := newPackage(tc.namespace, "own-without-"+strings.ToLower(tc.scope+"-"+tc.code), "users", ref)
			p.Spec.PermissionScope = tc.scope
			s.Create(t, p)
			s.waitFor(t, p, corev1.ConditionTrue, "Available")
			granted := s.granted(t, p)
			if len(granted) != 3 {
				t.Errorf("the controller in %s has %v", tc.namespace, granted)
			}
			env.Update(t, s.Env, p, tc.change)
			wait.Until(t, env.Limit, "the controller has no permissions", func() (string, bool) {
				left := s.granted(t, p)
				return fmt.Sprint(left), len(left) == 0
			})
			s.waitFor(t, p, map[bool]corev1.ConditionStatus{
				true: corev1.ConditionTrue, false: corev1.ConditionFalse,
			}[tc.code == "Available"], tc.code)
			s.Delete(t, p)
			s.WaitGone(t, p)
		}
	})
	t.Run("AServiceAccountOfAnotherClientIsKept", func(t *testing.T) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "own-account-of-a-user"}}
		s.Create(t, account)
		p := newPackage(team, account.Name, "users", ref)
		s.Create(t, p)
		s.waitFor(t, p, corev1.ConditionFalse, deployment.ErrNameConflict.Name)
		if message := p.GetCondition(v1.TypeReady).
			Message; !strings.Contains(message, "kubectl delete --namespace "+team+" serviceaccount "+account.Name) {
			t.Errorf("the message is %q", message)
		}
		s.Delete(t, account)
		s.waitFor(t, p, corev1.ConditionTrue, "Available")

		kept := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "own-kept"}}
		s.Create(t, kept)
		without := newPackage(team, kept.Name, "users", ref)
		without.Spec.Controller.Deployment = nil
		s.Create(t, without)
		s.waitFor(t, without, corev1.ConditionTrue, "Available")
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil ||
			kept.DeletionTimestamp != nil {
			t.Errorf("the ServiceAccount of another client is deleted (%v)", err)
		}
	})
	t.Run("ARoleOfAnotherClientIsKept", func(t *testing.T) {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: team, Name: "crossplane:package:own-foreign:system", Labels: map[string]string{"of": "a-user"},
		}}
		s.Create(t, role)
		p := newPackage(team, "own-foreign", "users", ref)
		s.Create(t, p)
		s.waitFor(t, p, corev1.ConditionFalse, firstgen.ErrProviderExists.Name)
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil || len(role.Rules) > 0 ||
			len(role.OwnerReferences) > 0 {
			t.Errorf("the role of another client is changed: %+v (%v)", role, err)
		}
	})
	t.Run("ClusterWideInTheNamespaceOfTheManager", func(t *testing.T) {
		p := newPackage(managerNamespace, "own-wide", "users", ref)
		p.Spec.PermissionScope = "Cluster"
		s.Create(t, p)
		s.waitFor(t, p, corev1.ConditionTrue, "Available")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "crossplane:package:" + managerNamespace + ":own-wide:system",
		}}
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			t.Fatal(err)
		}
		s.Delete(t, p)
		s.WaitGone(t, p)
		s.WaitGone(t, role)
	})
}

// granted returns the names of the objects with which the controller of a Package has permissions.
func (s *suite) granted(t *testing.T, p *packagesv1alpha1.Package) []string {
	t.Helper()
	role := metav1.ObjectMeta{Namespace: p.Namespace, Name: firstgen.RoleName(p.Name)}
	wide := metav1.ObjectMeta{Name: "crossplane:package:" + p.Namespace + ":" + p.Name + ":system"}
	var out []string
	for name, o := range map[string]client.Object{
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}},
		"Role":           &rbacv1.Role{ObjectMeta: role}, "RoleBinding": &rbacv1.RoleBinding{ObjectMeta: role},
		"ClusterRole":        &rbacv1.ClusterRole{ObjectMeta: wide},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{ObjectMeta: wide},
	} {
		switch err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); {
		case err == nil:
			out = append(out, name)
		case !apierrors.IsNotFound(err):
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}
