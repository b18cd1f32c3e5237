package firstgeneration

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// A ClusterPackageInstall installs, upgrades and deletes a package through a Provider, and its record stays true.
func TestClusterPackageInstallMaintainsItsProviderAndRecord(t *testing.T) {
	s := newSuite(t, nil)
	in := newInstall(
		packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "maintained",
		strings.TrimPrefix(s.publish(t, "maintained", "v1.0.0", "Cluster"), s.Registry+"/"),
	)
	in.InstallSpec().Source = s.Registry
	in.InstallSpec().
		ServiceAccount = &packagesv1alpha1.ServiceAccountOptions{Annotations: map[string]string{"iam": "special"}}
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")

	p := env.NewProvider("maintained", "")
	s.WaitReady(t, env.NewProvider("maintained", s.Registry+"/first/maintained:v1.0.0"))
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if got := p.Spec.Package; got != s.Registry+"/first/maintained:v1.0.0" {
		t.Errorf("the Provider has the package %s", got)
	}
	account := &corev1.ServiceAccount{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Namespace: managerNamespace, Name: p.Status.CurrentRevision}, account,
	); err != nil || account.Annotations["iam"] != "special" {
		t.Errorf("the ServiceAccount has the annotations %v (%v)", account.Annotations, err)
	}
	record := s.record(t, in)
	if spec := record.Spec; spec.Title != "Title of maintained" || spec.Category != "Database" || len(spec.Icons) != 1 ||
		len(spec.CRDs) != 1 ||
		spec.CRDs[0] != (packagesv1alpha1.Kind{APIVersion: "maintained.example.org/v1", Kind: "Thing"}) ||
		spec.Owners[0].Email != "jane@example.org" {
		t.Errorf("the record is %+v", spec)
	}
	checkAccount(t, record)
	if in.InstallStatus().PackageRecord.Name != record.Name || in.InstallStatus().Provider != "maintained" {
		t.Errorf("the status is %+v", in.InstallStatus())
	}

	t.Run("AnEditedRecordIsRestored", func(t *testing.T) {
		env.Update(t, s.Env, record, func(p *packagesv1alpha1.Package) { p.Spec.Title, p.Spec.CRDs = "Another", nil })
		wait.Until(t, env.Limit, "the record is restored", func() (string, bool) {
			r := s.record(t, in)
			return r.Spec.Title, r.Spec.Title == "Title of maintained" && len(r.Spec.CRDs) == 1
		})
	})
	t.Run("AnEditedProviderIsRestored", func(t *testing.T) {
		env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = s.publish(t, "maintained", "v9.9.9", "Cluster") })
		wait.Until(t, env.Limit, "the Provider is restored", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			return p.Spec.Package, err == nil && strings.HasSuffix(p.Spec.Package, ":v1.0.0")
		})
	})
	t.Run("PlansOfOtherChangesAreRefused", func(t *testing.T) {
		next := p.DeepCopy()
		next.Spec.Package = s.publish(t, "maintained", "v2.0.0", "Cluster")
		_, err := s.planner(t).Install(t.Context(), next, planner.Options{})
		wantFix(t, err, "`kubectl patch --namespace "+managerNamespace+
			" clusterpackageinstalls.packages.crossplane.io maintained --type merge -p '{\"spec\":{\"package\":\"first/maintained:v2.0.0\"}}'`")
		_, err = s.planner(t).Uninstall(t.Context(), p, planner.Options{})
		wantFix(t, err, "`kubectl delete --namespace "+managerNamespace+
			" clusterpackageinstalls.packages.crossplane.io maintained`")
	})
	t.Run("PlansOfUpdatesShowTheChanges", func(t *testing.T) {
		s.publish(t, "maintained", "v2.0.0", "Cluster")
		patch := "kubectl patch --namespace " + managerNamespace +
			" clusterpackageinstalls.packages.crossplane.io maintained --type merge -p '{\"spec\":{\"package\":\"first/maintained:v2.0.0\"}}'"
		file := filepath.Join(t.TempDir(), "plan.json")
		for _, tc := range []struct {
			args    string
			code    int
			refused bool
		}{
			{"plan update maintained v2.0.0", 2, false}, {"plan update maintained v2.0.0 -o markdown", 2, false},
			{"update maintained v2.0.0 --dry-run", 2, false},
			{"update maintained v2.0.0 --yes", 9, true}, {"plan update maintained v2.0.0 --out " + file, 9, true},
		} {
			code, stdout, stderr := command.Output(t, append(
				strings.Fields(tc.args), "--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", filepath.Join(t.TempDir(), "cache"),
			)...)
			text := stdout + stderr
			if code != tc.code || !strings.Contains(text, ":v2.0.0") || !strings.Contains(text, patch) ||
				!strings.Contains(text, "An install object would undo the update: ") ||
				strings.Contains(text, "breaks") || strings.Contains(stderr, planner.ErrMaintained.Name) != tc.refused {
				t.Errorf("%s: exit code %d, want %d\n%s%s", tc.args, code, tc.code, stdout, stderr)
			}
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a plan that cannot be applied is saved: %v", err)
		}
	})
	t.Run("UninstallsAreRefused", func(t *testing.T) {
		uid := p.UID
		for _, args := range [][]string{
			{"uninstall", "provider/maintained", "--yes"}, {"uninstall", "maintained", "--yes", "--wait", "30s"},
			{"uninstall", "provider", "maintained", "--yes"},
			{"uninstall", "provider/maintained"}, {"uninstall", "maintained", "provider/maintained", "--yes"},
			{"plan", "uninstall", "provider/maintained", "--out", filepath.Join(t.TempDir(), "plan.json")},
		} {
			code, stdout, stderr := command.Output(t, append(args, "--kubeconfig", cluster.Kubeconfig(t))...)
			if code != 9 || !strings.Contains(stderr, planner.ErrMaintained.Name) || !strings.Contains(
				stderr, "kubectl delete --namespace "+managerNamespace+" clusterpackageinstalls.packages.crossplane.io maintained",
			) {
				t.Errorf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
			}
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.UID != uid ||
				p.DeletionTimestamp != nil {
				t.Fatalf("%q deleted the Provider: %+v (%v)", args, p.ObjectMeta, err)
			}
		}
	})
	t.Run("PlansOfUninstallsShowTheDeletions", func(t *testing.T) {
		remove := "kubectl delete --namespace " + managerNamespace +
			" clusterpackageinstalls.packages.crossplane.io maintained"
		for _, tc := range []struct {
			args string
			code int
		}{
			{"plan uninstall provider/maintained", 2}, {"plan uninstall maintained -o markdown", 2},
			{"uninstall maintained --dry-run --yes", 2}, {"uninstall maintained", 9},
			{"uninstall maintained provider/maintained --dry-run", 2},
		} {
			code, stdout, stderr := command.Output(t, append(strings.Fields(tc.args), "--kubeconfig", cluster.Kubeconfig(t))...)
			text := stdout + stderr
			if code != tc.code || !strings.Contains(text, "CustomResourceDefinition") ||
				!strings.Contains(text, "An install object would undo the uninstall: ") ||
				!strings.Contains(text, remove) || strings.Contains(text, "breaks") {
				t.Errorf("%s: exit code %d, want %d\n%s%s", tc.args, code, tc.code, stdout, stderr)
			}
		}
	})
	t.Run("WhyNamesTheInstallObject", func(t *testing.T) {
		code, stdout, stderr := command.Output(t, "why", "maintained", "--kubeconfig", cluster.Kubeconfig(t))
		by := managerNamespace + "/maintained"
		if code != 0 ||
			!strings.Contains(stdout, "\ninstalled by ClusterPackageInstall/"+by+"\nused by ClusterPackageInstall "+by+"\n") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("AnUpgradeIsAnEdit", func(t *testing.T) {
		next := s.publish(t, "maintained", "v2.0.0", "Cluster")
		env.Update(
			t, s.Env, in.(*packagesv1alpha1.ClusterPackageInstall),
			func(in *packagesv1alpha1.ClusterPackageInstall) { in.Spec.Package = next },
		)
		wait.Until(t, env.Limit, "the record has the new version", func() (string, bool) {
			r := s.record(t, in)
			return r.Spec.Version, r.Spec.Version == "v2.0.0"
		})
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
	})
	t.Run("AStableInstallationWritesNothing", func(t *testing.T) {
		before := s.record(t, in).ResourceVersion
		s.audit.Reset("")
		// A change of the Provider makes the manager compare everything.
		env.Update(t, s.Env, p, func(p *v1.Provider) { metav1.SetMetaDataLabel(&p.ObjectMeta, "touched", "true") })
		s.WaitReady(t, env.NewProvider("maintained", s.Registry+"/first/maintained:v2.0.0"))
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		if writes := s.audit.Writes("maintained"); len(writes) > 0 || s.record(t, in).ResourceVersion != before {
			t.Errorf("the manager wrote %v", writes)
		}
	})
	t.Run("ADeletionDeletesTheProviderAndTheRecord", func(t *testing.T) {
		s.Delete(t, in)
		s.WaitGone(t, in)
		s.WaitGone(t, p)
		s.waitDefinitionGone(t, "things.maintained.example.org")
		s.WaitGone(t, record)
	})
}

// planner returns a planner of the cluster.
func (s *suite) planner(t *testing.T) *planner.Planner {
	t.Helper()
	cluster, err := planner.NewCluster(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &planner.Planner{Reader: s.Client, Cluster: cluster, Frontend: firstgen.Frontend(), Namespace: managerNamespace}
}

// isOrphan reports whether `xpkg autoremove` would uninstall a package.
func (s *suite) isOrphan(t *testing.T, p v1.Package) bool {
	t.Helper()
	all, err := inventory.LoadNamed(t.Context(), s.Client)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := apply.NewCluster(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	uses, err := firstgen.Frontend().Uses(t.Context(), kinds, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	g, err := all.Graph(uses)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(
		g.Orphans(), func(n graph.Node) bool { return n.Kind == p.PackageKind() && n.Name == p.GetName() },
	)
}

// wantFix fails unless a change is refused because of an install object, with a command as the fix.
func wantFix(t *testing.T, err error, command string) {
	t.Helper()
	if !errors.Is(err, planner.ErrMaintained) || !strings.Contains(errcode.From(err).Do, command) {
		t.Errorf("%v (%s), want %s and %s", err, errcode.From(err).Do, planner.ErrMaintained.Name, command)
	}
}

// A Provider that a user created is never taken over, unless the user hands it over.
func TestClusterPackageInstallTakesOverNoProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	own := env.NewProvider("handed", s.publish(t, "handed", "v1.0.0", "Cluster"))
	s.Create(t, own)
	s.WaitReady(t, own)
	in := newInstall(
		packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "handed", s.publish(t, "handed", "v2.0.0", "Cluster"),
	)
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionFalse, firstgen.ErrProviderExists.Name)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil ||
		!strings.HasSuffix(own.Spec.Package, ":v1.0.0") {
		t.Errorf("the Provider has the package %s (%v)", own.Spec.Package, err)
	}
	env.Update(t, s.Env, own, func(p *v1.Provider) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, state.AnnotationInstalledBy, "ClusterPackageInstall/"+managerNamespace+
			"/handed")
	})
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil ||
		!strings.HasSuffix(own.Spec.Package, ":v2.0.0") {
		t.Errorf("the Provider has the package %s (%v)", own.Spec.Package, err)
	}
}

// An install by kind uses the installed Provider that has the CRD, and does not own it.
func TestClusterPackageInstallByKindUsesTheInstalledProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	own := env.NewProvider("bykind-provider", s.publish(t, "bykind", "v1.0.0", "Cluster"))
	s.Create(t, own)
	s.WaitReady(t, own)
	in := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "bykind", "")
	in.InstallSpec().CRD = "things.bykind.example.org/v1"
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionTrue, "Available")
	if in.InstallStatus().Provider != own.Name {
		t.Errorf("the status is %+v", in.InstallStatus())
	}
	plan, err := s.planner(t).Uninstall(t.Context(), own, planner.Options{})
	want := "clusterpackageinstall/" + managerNamespace + "/bykind needs " + s.Registry +
		"/first/bykind for things.bykind.example.org/v1, and it would not be installed"
	if err != nil || len(plan.Breaks) != 1 || plan.Breaks[0].String() != want {
		t.Errorf("the deletion of the Provider breaks %v (%v), want %s", plan.Breaks, err, want)
	}
	env.Update(
		t, s.Env, own, func(p *v1.Provider) { metav1.SetMetaDataLabel(&p.ObjectMeta, graph.LabelAutoInstalled, "true") },
	)
	if s.isOrphan(t, own) {
		t.Error("the Provider that an install object uses is an orphan")
	}
	s.Delete(t, in)
	s.WaitGone(t, in)
	if !s.isOrphan(t, own) {
		t.Error("a dependency that nothing uses is no orphan")
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil || own.DeletionTimestamp != nil {
		t.Errorf("the Provider of another client is deleted: %v", err)
	}
	unknown := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "unknown-kind", "")
	unknown.InstallSpec().CRD = "things.unknown.example.org/v1"
	s.Create(t, unknown)
	s.waitFor(t, unknown, corev1.ConditionFalse, provide.ErrNoProvider.Name)
}

// An object whose spec changes to a CRD of another Provider no longer owns the Provider that it maintained: its
// deletion deletes nothing. For a CRD of the Provider that it maintained, it uses that one without owning it. For a CRD
// that no package has, it uses none.
func TestClusterPackageInstallReleasesTheProviderThatItNoLongerUses(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	other := env.NewProvider("released-other", s.publish(t, "released-other", "v1.0.0", "Cluster"))
	s.Create(t, other)
	s.WaitReady(t, other)
	install := func(name string) (*packagesv1alpha1.ClusterPackageInstall, *v1.Provider) {
		in := newInstall(
			packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, name, s.publish(t, name, "v1.0.0", "Cluster"),
		).(*packagesv1alpha1.ClusterPackageInstall)
		in.Spec.ServiceAccount = &packagesv1alpha1.ServiceAccountOptions{Annotations: map[string]string{"iam": "special"}}
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		p := env.NewProvider(name, "")
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		return in, p
	}
	for name, tc := range map[string]struct {
		group string
		waits bool
	}{
		"released": {other.Name, true}, "released-at-once": {other.Name, false}, "released-own": {"released-own", true},
		"released-own-at-once": {"released-own-at-once", false},
		"released-none":        {"released-nowhere", false},
	} {
		in, p := install(name)
		env.Update(t, s.Env, in, func(in *packagesv1alpha1.ClusterPackageInstall) {
			in.Spec.Package, in.Spec.CRD = "", "things."+tc.group+".example.org/v1"
		})
		if tc.waits {
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			if in.Status.Provider != tc.group || in.Status.ChosenPackage != nil {
				t.Errorf(
					"the object %s uses the Provider %s with the selection %v", name, in.Status.Provider, in.Status.ChosenPackage,
				)
			}
		}
		s.Delete(t, in)
		s.WaitGone(t, in)
		for _, x := range []client.Object{p, other, &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{
			Name: name,
		}}} {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil ||
				x.GetDeletionTimestamp() != nil || x.GetAnnotations()[state.AnnotationInstalledBy] != "" {
				t.Errorf("%T %s is deleted, or not released: %v %v", x, x.GetName(), x.GetAnnotations(), err)
			}
		}
		s.Delete(t, p)
		s.WaitGone(t, p)
	}
}

// An install object that is deleted without its dependents, as with kubectl delete --cascade=orphan, leaves the
// Provider with its custom resources to the user, also if the manager does not run while the garbage collector carries
// that out.
func TestClusterPackageInstallDeletedWithoutItsDependents(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	for name, stopped := range map[string]bool{"orphaning": false, "orphaned": true} {
		in := newInstall(
			packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, name, s.publish(t, name, "v1.0.0", "Cluster"),
		)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": name + ".example.org/v1", "kind": "Thing"}}
		thing.SetNamespace(managerNamespace)
		thing.SetName("kept")
		s.Create(t, thing)
		if stopped {
			s.manager.Stop()
		}
		if err := s.Client.Delete(t.Context(), in, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			t.Fatal(err)
		}
		if stopped {
			wait.Until(t, env.Limit, "the garbage collector has orphaned the record", func() (string, bool) {
				err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(in), in)
				return fmt.Sprint(in.GetFinalizers(), err),
					err == nil && !slices.Contains(in.GetFinalizers(), metav1.FinalizerOrphanDependents)
			})
			s.manager = s.RunManager(t, s.options)
		}
		record := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name}}
		s.WaitGone(t, in)
		s.WaitGone(t, record)
		p := env.NewProvider(name, "")
		for _, x := range []client.Object{p, thing} {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil ||
				x.GetDeletionTimestamp() != nil || x.GetAnnotations()[state.AnnotationInstalledBy] != "" {
				t.Errorf("%T %s is deleted, or not released: %v %v", x, x.GetName(), x.GetAnnotations(), err)
			}
		}
		s.Delete(t, p)
		s.WaitGone(t, p)
	}
}

// While a Provider waits for the deletion of its custom resources, its install objects and their records are not ready.
// The record of an object whose Provider does not exist any more is deleted.
func TestRecordsFollowTheDeletionOfTheirProviders(t *testing.T) {
	s := newSuite(t, nil)
	// hold creates an object that delays the deletion of the Provider of a group.
	hold := func(group string) (release func()) {
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + ".example.org/v1", "kind": "Thing"}}
		thing.SetNamespace(managerNamespace)
		thing.SetName("held")
		thing.SetFinalizers([]string{"example.org/held"})
		s.Create(t, thing)
		answer := []byte(`{"metadata":{"annotations":{"` + v1.AnnotationOnDelete + `":"cascade=1"}}}`)
		if err := s.Client.Patch(t.Context(), env.NewProvider(group, ""), client.RawPatch(types.MergePatchType, answer)); err != nil {
			t.Fatal(err)
		}
		return func() {
			thing.SetFinalizers(nil)
			if err := s.Client.Patch(
				t.Context(), thing, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)),
			); err != nil {
				t.Fatal(err)
			}
		}
	}
	// waitDeleting waits until an install object and its record report the deletion.
	waitDeleting := func(in packagesv1alpha1.Install) {
		t.Helper()
		s.waitFor(t, in, corev1.ConditionFalse, "Deleting")
		s.waitFor(t, s.record(t, in), corev1.ConditionFalse, "Deleting")
	}
	t.Run("ByKind", func(t *testing.T) {
		p := env.NewProvider("leaving", s.publish(t, "leaving", "v1.0.0", "Cluster"))
		s.Create(t, p)
		s.WaitReady(t, p)
		in := byKind("leaving")
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		record := s.record(t, in)
		s.waitFor(t, record, corev1.ConditionTrue, "Available")
		release := hold("leaving")
		s.Delete(t, p)
		waitDeleting(in)
		release()
		s.WaitGone(t, p)
		s.WaitGone(t, record)
		s.waitFor(t, in, corev1.ConditionFalse, provide.ErrNoProvider.Name)
		if in.Status.PackageRecord != nil || in.Status.Provider != "" {
			t.Errorf("the status is %+v", in.Status)
		}
	})
	t.Run("ByPackage", func(t *testing.T) {
		in := newInstall(
			packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "leaving-own",
			s.publish(t, "leaving-own", "v1.0.0", "Cluster"),
		)
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		release := hold("leaving-own")
		s.Delete(t, env.NewProvider("leaving-own", ""))
		waitDeleting(in)
		release()
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		record := s.record(t, in)
		s.waitFor(t, record, corev1.ConditionTrue, "Available")

		release = hold("leaving-own")
		s.Delete(t, in)
		waitDeleting(in)
		release()
		s.WaitGone(t, in)
		s.WaitGone(t, record)
	})
}

// A runtime that the API server refuses, or whose objects have the names of others, is refused before anything of its
// package is written, and in plans.
func TestRefusedRuntimesLeaveNothing(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "invalid-team")
	s.share(t, "invalid", s.publish(t, "invalid", "v1.0.0", "Namespaced"))
	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "invalid"}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{
		Spec: &appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "package-runtime", Ports: []corev1.ContainerPort{{
				ContainerPort: 70000,
			}}}}},
		}}}
	s.Create(t, config)
	dotted := env.NewProvider("dotted.v1", s.publish(t, "dotted", "v1.0.0", "Cluster"))
	configured := env.NewProvider("configured", s.publish(t, "configured", "v1.0.0", "Cluster"))
	configured.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: config.Name}
	own := newPackage(team, "invalid-own", "invalid", dotted.Spec.Package)
	own.Spec.Controller.Deployment.Spec.Raw = bytes.Replace(
		own.Spec.Controller.Deployment.Spec.Raw, []byte(`"name": "main"`),
		[]byte(`"name": "main", "ports": [{"containerPort": 70000}]`), 1,
	)
	taken := env.NewProvider("taken", s.publish(t, "taken", "v1.0.0", "Cluster"))
	for _, name := range []string{taken.Name, "taken-too"} {
		s.Create(t, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	s.audit.Reset("")
	for o, code := range map[object]errcode.Code{
		dotted: manifests.ErrRejected, configured: manifests.ErrRejected, own: manifests.ErrRejected,
		taken: deployment.ErrNameConflict,
	} {
		s.Create(t, o)
		s.waitFor(t, o, corev1.ConditionFalse, code.Name)
	}
	for _, w := range s.audit.Writes("") {
		for _, resource := range []string{
			"customresourcedefinitions", "serviceaccounts", "roles", "rolebindings", "clusterroles", "clusterrolebindings",
			"services", "secrets",
		} {
			if strings.Contains(w, " "+resource+"/") {
				t.Errorf("a refused runtime causes the write %s", w)
			}
		}
	}
	for name, refusal := range map[string]errcode.Code{
		"dotted.v2": manifests.ErrRejected, "configured-too --runtime-config=" + config.Name: manifests.ErrRejected,
		"taken-too": deployment.ErrNameConflict,
	} {
		ref := s.publish(t, "refused-plan", "v1.0.0", "Cluster")
		args := append(
			[]string{"plan", "install", "provider", ref, "--kubeconfig", cluster.Kubeconfig(t)}, strings.Fields(name)...,
		)
		code, stdout, stderr := command.Output(t, args...)
		if code != refusal.Class.Exit || !strings.Contains(stdout, "refuse  "+refusal.Name) {
			t.Errorf("the plan of %s ends with exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

// A ClusterPackageInstall outside of the namespaces of administrators has no effect, and neither have invalid specs.
func TestClusterPackageInstallIsRefused(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "refused-team")
	ref := s.publish(t, "refused", "v1.0.0", "Cluster")
	both := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "refused-both", ref)
	both.InstallSpec().CRD = "things.refused.example.org/v1"
	withSource := func(name, by string) packagesv1alpha1.Install {
		in := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, name, "")
		in.InstallSpec().Source = "user:hunter2@" + s.Registry
		if by == "crd" {
			in.InstallSpec().CRD = "things.refused.example.org/v1"
		} else {
			in.InstallSpec().Package = "first/refused:v1.0.0"
		}
		return in
	}
	for name, tc := range map[string]struct {
		in   packagesv1alpha1.Install
		code string
	}{
		"elsewhere": {
			newInstall(packagesv1alpha1.ClusterPackageInstallKind, team, "refused-elsewhere", ref), firstgen.ErrNamespace.Name,
		},
		"nothing": {
			newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "refused-nothing", ""),
			firstgen.ErrReference.Name,
		},
		"both": {both, firstgen.ErrReference.Name},
		"invalid": {
			newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "refused-invalid", "Not A Reference"),
			firstgen.ErrReference.Name,
		},
		"password": {
			newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "refused-password", "user:hunter2@"+ref),
			firstgen.ErrReference.Name,
		},
		"source": {withSource("refused-source", "package"), firstgen.ErrReference.Name},
		"crd":    {withSource("refused-crd", "crd"), firstgen.ErrReference.Name},
	} {
		t.Run(name, func(t *testing.T) {
			s.Create(t, tc.in)
			s.waitFor(t, tc.in, corev1.ConditionFalse, tc.code)
			if status := fmt.Sprintf("%+v", tc.in.InstallStatus()); strings.Contains(status, "hunter2") {
				t.Errorf("the status contains credentials: %s", status)
			}
			p := &v1.Provider{}
			err := s.Client.Get(
				t.Context(), client.ObjectKey{Name: firstgen.ProviderName(tc.in.GetNamespace(), tc.in.GetName(), managerNamespace)},
				p,
			)
			if !apierrors.IsNotFound(err) {
				t.Errorf("there is a Provider (%v)", err)
			}
		})
	}
}

// A package that depends on the kinds with which packages are installed could install and remove others: it waits for
// approval, with nothing written.
func TestDependencyOnInstallObjectsWaitsForApproval(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	for name, kind := range map[string]string{
		"installer": "'*.packages.crossplane.io/v1alpha1'",
		"stacks":    "clusterstackinstalls.stacks.crossplane.io/v1alpha1",
	} {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			writeTree(t, tree, name, kind)
			ref := s.pushWithRuntime(t, tree, "first/"+name+":v1.0.0")
			in := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, name, ref)
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionFalse, rbac.ErrPermissionEscalation.Name)
			crd := &metav1.PartialObjectMetadata{}
			crd.SetGroupVersionKind(definitionKind)
			if err := s.Client.Get(
				t.Context(), client.ObjectKey{Name: "things." + name + ".example.org"}, crd,
			); !apierrors.IsNotFound(err) {
				t.Errorf("a package without approval has a CRD (%v)", err)
			}
		})
	}
}

// writeTree writes a package of the first generation that depends on a kind.
func writeTree(t *testing.T, tree, name, dependsOn string) {
	t.Helper()
	for file, text := range map[string]string{
		"app.yaml": "title: " + name + "\nversion: v1.0.0\npermissionScope: Cluster\ndependsOn:\n- crd: " +
			dependsOn + "\n",
		"install.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name +
			"}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: main}]}\n",
		"resources/things.crd.yaml": strings.SplitN(content(name, "v1.0.0", "Cluster"), "---\n", 2)[1],
	} {
		path := filepath.Join(tree, ".registry", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
