package firstgeneration

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// known is a source of candidates.
type known []provide.Candidate

func (k known) Candidates(kind dependency.KindRef) []provide.Candidate {
	var out []provide.Candidate
	for _, c := range k {
		if kind.Matches(c.Group, c.Kind, c.Plural) {
			out = append(out, c)
		}
	}
	return out
}

func (k known) Group(group string) []provide.Candidate {
	return k.Candidates(dependency.KindRef{Name: dependency.AllKinds, Group: group})
}

func (known) Kinds() []dependency.KindRef { return nil }

// newKindSuite starts a manager that finds packages for kinds in the returned source, which must be set before the
// first use.
func newKindSuite(t *testing.T) (*suite, *atomic.Pointer[known]) {
	t.Helper()
	sources := &atomic.Pointer[known]{}
	return newSuite(t, func(_ *suite, o *controller.Options) {
		o.KindSources = func(context.Context, time.Duration) ([]provide.Source, error) {
			return []provide.Source{*sources.Load()}, nil
		}
	}), sources
}

// checkNoWrites fails if the manager has written more about an install object than its status.
func (s *suite) checkNoWrites(t *testing.T, name string) {
	t.Helper()
	for _, w := range s.audit.Writes("") {
		if strings.Contains(w, name) && !strings.Contains(w, "clusterpackageinstalls") && !strings.Contains(w, "events") {
			t.Errorf("a refused install object causes the write %s", w)
		}
	}
}

// candidate returns the candidate for the kind Thing of a group.
func candidate(group, repository string) provide.Candidate {
	return provide.Candidate{
		Repository: repository, Version: "v1.0.0", Digest: oci.DigestOf([]byte(repository)), Kind: "Thing", Plural: "things",
		Group:  group + ".example.org",
		Served: []string{"v1"}, Type: v1.ProviderKind, Cost: 1, Source: "test",
	}
}

// An install by kind selects a package only without doubt and keeps it; otherwise it writes nothing but its own status.
func TestInstallByKindSelectsOnlyWithoutDoubt(t *testing.T) {
	s, sources := newKindSuite(t)
	sure, doubt := oci.RepositoryName(s.publish(t, "sure", "v1.0.0", "Cluster")),
		oci.RepositoryName(s.publish(t, "doubt", "v1.0.0", "Cluster"))
	sources.Store(&known{
		candidate("sure", sure), candidate("doubt", doubt), candidate("doubt", "elsewhere.example.org/copy/doubt"),
	})

	t.Run("TheOnlyPackageIsInstalledAndRecorded", func(t *testing.T) {
		in := byKind("sure")
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		if c := in.InstallStatus().ChosenPackage; c == nil || c.Package != sure+":v1.0.0" {
			t.Errorf("the recorded choice is %+v", c)
		}
		more := append(known{candidate("sure", "elsewhere.example.org/copy/sure")}, *sources.Load()...)
		sources.Store(&more)
		p := &v1.Provider{}
		env.Update(t, s.Env, in, func(in *packagesv1alpha1.ClusterPackageInstall) {
			in.Labels = map[string]string{"touched": "true"}
		})
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "sure"}, p); err != nil ||
			p.Spec.Package != sure+":v1.0.0" {
			t.Errorf("the Provider has the package %s (%v)", p.Spec.Package, err)
		}
		if got := inventory.InstallsOf(frontend.Installs(firstgen.Frontend().All(t.Context(), s.Client)), p); len(got) != 1 ||
			got[0].Name != "sure" || got[0].Ready != corev1.ConditionTrue {
			t.Errorf("the install objects of the Provider are %v", got)
		}
	})
	t.Run("AnAmbiguousKindCausesNoWrites", func(t *testing.T) {
		in := byKind("doubt")
		s.audit.Reset("")
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, provide.ErrAmbiguous.Name)
		s.checkNoWrites(t, "doubt")
		record := `[{"package":"` + doubt + `","constraint":"v1.0.0","crd":"things.doubt.example.org/v1"}]`
		command := "kubectl annotate --overwrite --namespace " + managerNamespace +
			" clusterpackageinstalls.packages.crossplane.io doubt '" + graph.AnnotationKindProviders + "=" + record + "'"
		if message := in.GetCondition(v1.TypeReady).Message; !strings.Contains(message, command) {
			t.Errorf("the message %s does not contain the command %s", message, command)
		}
		env.Update(t, s.Env, in, func(in *packagesv1alpha1.ClusterPackageInstall) {
			metav1.SetMetaDataAnnotation(&in.ObjectMeta, graph.AnnotationKindProviders, record)
		})
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		if c := in.Status.ChosenPackage; c == nil || c.Package != doubt+":v1.0.0" {
			t.Errorf("the recorded choice is %+v", c)
		}
	})
}

// A kind of an API group that another publisher's package has in the cluster, or a user, is in doubt, also if the
// sources know only one package for it.
func TestInstallByKindCountsTheKindsOfTheCluster(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s, sources := newKindSuite(t)
	squatter := func(group string) provide.Candidate {
		c := candidate(group, "elsewhere.example.org/evil/"+group)
		c.Kind, c.Plural = "Trap", "traps"
		return c
	}
	sources.Store(&known{squatter("held"), squatter("mine")})
	held := env.NewProvider("held", s.publish(t, "held", "v1.0.0", "Cluster"))
	s.Create(t, held)
	s.WaitReady(t, held)
	crd := &unstructured.Unstructured{}
	_, definition, _ := strings.Cut(content("mine", "v1.0.0", "Cluster"), "\n---\n")
	if err := yaml.Unmarshal([]byte(definition), &crd.Object); err != nil {
		t.Fatal(err)
	}
	s.Create(t, crd)
	for _, group := range []string{"held", "mine"} {
		in := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "trap-"+group, "")
		in.InstallSpec().CRD = "traps." + group + ".example.org/v1"
		s.audit.Reset("")
		s.Create(t, in)
		s.waitFor(t, in, corev1.ConditionFalse, provide.ErrAmbiguous.Name)
		s.checkNoWrites(t, "trap-"+group)
	}
}

// A package that was selected for a kind that it does not define is refused before anything of it is installed, also in
// place of a package that works.
func TestContentWithoutTheSelectedKindCausesNoWrites(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s, sources := newKindSuite(t)
	honest, liar := oci.RepositoryName(s.publish(t, "honest", "v1.0.0", "Cluster")),
		oci.RepositoryName(s.publish(t, "liar", "v1.0.0", "Cluster"))
	sources.Store(&known{candidate("claimed", liar), candidate("honest", honest)})
	in := byKind("claimed")
	s.audit.Reset("")
	s.Create(t, in)
	s.waitFor(t, in, corev1.ConditionFalse, provide.ErrNotProvided.Name)
	s.checkNoWrites(t, "claimed")
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "claimed"}, &v1.Provider{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Provider exists (%v)", err)
	}

	works := byKind("honest")
	s.Create(t, works)
	s.waitFor(t, works, corev1.ConditionTrue, "Available")
	env.Update(t, s.Env, works, func(in *packagesv1alpha1.ClusterPackageInstall) {
		metav1.SetMetaDataAnnotation(&in.ObjectMeta, graph.AnnotationKindProviders, `[{"package":"`+liar+
			`","constraint":"v1.0.0","crd":"things.honest.example.org/v1"}]`)
	})
	s.waitFor(t, works, corev1.ConditionFalse, provide.ErrNotProvided.Name)
	p := &v1.Provider{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "honest"}, p); err != nil ||
		p.Spec.Package != honest+":v1.0.0" {
		t.Errorf("the Provider has the package %s (%v)", p.Spec.Package, err)
	}
}

// Objects for one kind that are created together use one Provider. One for a version that it does not serve is refused.
func TestInstallObjectsForOneKindUseOneProvider(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s, sources := newKindSuite(t)
	sources.Store(&known{candidate("crowd", oci.RepositoryName(s.publish(t, "crowd", "v1.0.0", "Namespaced")))})
	var all []*packagesv1alpha1.ClusterPackageInstall
	for _, name := range []string{"crowd-a", "crowd-b", "crowd-c", "crowd-d"} {
		in := byKind("crowd")
		in.Name = name
		s.Create(t, in)
		all = append(all, in)
	}
	providers := map[string]bool{}
	for _, in := range all {
		s.waitFor(t, in, corev1.ConditionTrue, "Available")
		providers[in.Status.Provider] = true
	}
	if len(providers) != 1 {
		t.Errorf("the objects use the Providers %v", providers)
	}
	unserved := byKind("crowd")
	unserved.Name, unserved.Spec.CRD = "crowd-v9", "things.crowd.example.org/v9"
	s.Create(t, unserved)
	s.waitFor(t, unserved, corev1.ConditionFalse, provide.ErrKindHeld.Name)

	team := s.newNamespace(t, "crowd-team")
	p := &v1.Provider{}
	p.Name = all[0].Status.Provider
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
	})
	inTeam := newInstall(packagesv1alpha1.PackageInstallKind, team, "crowd", "").(*packagesv1alpha1.PackageInstall)
	inTeam.Spec.CRD = unserved.Spec.CRD
	s.Create(t, inTeam)
	s.waitFor(t, inTeam, corev1.ConditionFalse, provide.ErrKindHeld.Name)
	if err := s.Client.Get(
		t.Context(), client.ObjectKeyFromObject(inTeam), &packagesv1alpha1.Package{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("a refused PackageInstall has a record (%v)", err)
	}
}

// byKind returns an install object for the kind Thing of a group.
func byKind(group string) *packagesv1alpha1.ClusterPackageInstall {
	in := newInstall(packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, group, "").(*packagesv1alpha1.ClusterPackageInstall)
	in.Spec.CRD = "things." + group + ".example.org/v1"
	return in
}
