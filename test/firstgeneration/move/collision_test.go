package move

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/firstgeneration"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// collision is an object of a user with the name of an object that the migration, or the manager after it, writes.
type collision struct {
	name   string
	object client.Object
	// says are parts of the refusal: the objects.
	says []string
	// written reports that the migration itself writes an object with this name. The manager refuses the others after it,
	// too.
	written bool
	// accepted reports that the command in the refusal lets the migration continue.
	accepted bool
}

// collisions returns an object of a user for each object that is written for the two installations, in the order in
// which they are written.
func (f *former) collisions() []collision {
	cluster, stack := f.packages[0], f.packages[1]
	first := func(group, kind, ns, name string) *unstructured.Unstructured {
		o := object(group, kind, ns, name)
		o.Object["spec"] = map[string]any{"title": "of a user"}
		return o
	}
	install := func(kind, ns, name string) *unstructured.Unstructured {
		o := object(packagesv1alpha1.Group, kind, ns, name)
		o.Object["spec"] = map[string]any{"package": "registry.example.org/of/a-user:v1.0.0"}
		return o
	}
	provider := func(name, ref string) *v1.Provider {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			v1.AnnotationPaused: "true",
		}}}
		p.Spec.Package = ref
		return p
	}
	named := metav1.ObjectMeta{Namespace: f.team, Name: stack}
	role := metav1.ObjectMeta{Namespace: f.team, Name: firstgen.RoleName(stack)}
	deployment := func(meta metav1.ObjectMeta) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: meta}
		d.Spec.Replicas = new(int32(0))
		d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: map[string]string{"of": "user"}},
			map[string]string{"of": "user"}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "own", Image: "registry.invalid/own:v1"}}
		return d
	}
	manager := metav1.ObjectMeta{Namespace: namespace, Name: bootstrap.Name}
	stackInstall, clusterInstall := "StackInstall "+f.team+"/"+stack, "ClusterPackageInstall "+namespace+"/"+cluster
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "own"}
	return []collision{
		{"PackageInstall", install("PackageInstall", f.team, stack), []string{stackInstall +
			" cannot become the PackageInstall " + f.team + "/" + stack}, true, true},
		{"Package", first(packagesv1alpha1.Group, "Package", f.team, stack), []string{stackInstall, "Package " + f.team +
			"/" + stack + " of packages.crossplane.io"}, true, true},
		{"StackDefinition of a PackageInstall", first(
			packagesv1alpha1.Group, "StackDefinition", f.team, stack,
		), []string{stackInstall, "StackDefinition " + f.team + "/" + stack + " of packages.crossplane.io"}, true, true},
		{"earlier StackDefinition of a PackageInstall", first(
			packagesv1alpha1.EarlierGroup, "StackDefinition", f.team, stack,
		), []string{stackInstall, "StackDefinition " + f.team + "/" + stack + " of stacks.crossplane.io"}, true, true},
		{"StackDefinition of a ClusterPackageInstall", first(
			packagesv1alpha1.Group, "StackDefinition", namespace, cluster,
		), []string{clusterInstall, "StackDefinition " + namespace + "/" + cluster}, true, true},
		{"Provider of a ClusterPackageInstall", provider(
			cluster, "registry.example.org/of/a-user:v1.0.0",
		), []string{clusterInstall, "Provider " + cluster}, true, true},
		{"Provider of PackageInstalls", provider("former-"+stack, f.Registry+"/former/"+stack+
			":v1.0.0"), []string{stackInstall, "is not shared"}, true, true},
		{"ServiceAccount", &corev1.ServiceAccount{ObjectMeta: named}, []string{stackInstall, "serviceaccounts " + f.team +
			"/" + stack}, false, true},
		{"Role", &rbacv1.Role{ObjectMeta: role}, []string{stackInstall, role.Name}, false, true},
		{"RoleBinding", &rbacv1.RoleBinding{ObjectMeta: role, RoleRef: ref}, []string{stackInstall, role.Name}, false, true},
		{"Deployment of the manager", deployment(manager), []string{"Deployment " + namespace + "/xpkg"}, true, true},
		{"ServiceAccount of the manager", &corev1.ServiceAccount{ObjectMeta: manager}, []string{"ServiceAccount " +
			namespace + "/xpkg"}, true, true},
		{"ClusterRole of the manager", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: bootstrap.Name,
		}}, []string{"ClusterRole xpkg"}, true, true},
	}
}

// plan plans the migration as a new process.
func (f *former) plan(t *testing.T, cfg *rest.Config, withManager bool) (*migration.Plan, error) {
	t.Helper()
	c, err := apply.NewCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return (&firstgeneration.Migration{
		Client: env.NewClient(t, cfg), Cluster: c, Poll: 50 * time.Millisecond,
		Manager: bootstrap.Options{Namespace: namespace, Version: "v1.0.0", Replicas: 1}, WithoutManager: !withManager,
	}).Plan(t.Context())
}

// refused checks that an error is a refusal that names the objects of a collision.
func (c collision) refused(t *testing.T, at string, err error) {
	t.Helper()
	if !errors.Is(err, migration.ErrRefused) {
		t.Errorf("%s, %s: error %v", c.name, at, err)
		return
	}
	for _, part := range append(slices.Clone(c.says), c.object.GetName()) {
		if !strings.Contains(errcode.Message(err), part) {
			t.Errorf("%s, %s: the refusal lacks %q: %s", c.name, at, part, errcode.Message(err))
		}
	}
}

// unchanged checks that nothing has written the object of a user.
func (f *former) unchanged(t *testing.T, c collision) {
	t.Helper()
	live := c.object.DeepCopyObject().(client.Object)
	err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), live)
	same := live.GetResourceVersion() == c.object.GetResourceVersion()
	if _, ok := live.(*appsv1.Deployment); ok {
		same = live.GetGeneration() == c.object.GetGeneration() // The cluster writes the status.
	}
	if err != nil || !same || live.GetUID() != c.object.GetUID() {
		t.Errorf("%s: the object of the user is %+v (%v)", c.name, live, err)
	}
}

// remedy carries out the first kubectl command in a refusal, which sets a label or an annotation of the object of a
// collision.
func (f *former) remedy(t *testing.T, c collision, err error) {
	t.Helper()
	_, rest, _ := strings.Cut(errcode.Message(err), "`kubectl ")
	command, _, _ := strings.Cut(rest, "`")
	words := strings.Fields(command)
	if len(words) < 4 || !slices.Contains(words, c.object.GetName()) ||
		c.object.GetNamespace() != "" && !slices.Contains(words, c.object.GetNamespace()) {
		t.Fatalf("%s: the command %q", c.name, command)
	}
	field := map[string]string{"annotate": "annotations", "label": "labels"}[words[0]]
	i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") })
	key, value, _ := strings.Cut(words[i], "=")
	patch := []byte(`{"metadata":{"` + field + `":{"` + key + `":"` + value + `"}}}`)
	if err := f.Client.Patch(t.Context(), c.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// remove deletes the object of a user.
func (f *former) remove(t *testing.T, c collision) {
	t.Helper()
	f.Delete(t, c.object)
	f.WaitGone(t, c.object.DeepCopyObject().(client.Object))
	c.object.SetResourceVersion("")
	c.object.SetUID("")
}

// An object of a user with a name that the migration or the manager needs is named with the command that hands it over.
// Neither the plan nor a run that had been planned before the object existed writes it.
func TestObjectsOfUsersAreNotTaken(t *testing.T) {
	f := newFormer(t, "taken")
	// Users can only create Providers if the package API exists.
	cluster, err := apply.NewCluster(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packageapi.Install(t.Context(), cluster, packageapi.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.collisions() {
		f.Create(t, c.object)
		audit := &env.Audit{}
		_, err := f.plan(t, audit.Wrap(f.Config), true)
		c.refused(t, "plan", err)
		if writes := audit.Writes(""); len(writes) > 0 {
			t.Errorf("%s: the plan writes %v", c.name, writes)
		}
		f.unchanged(t, c)
		if err != nil && c.accepted {
			f.remedy(t, c, err)
			if _, err := f.plan(t, f.Config, true); err != nil {
				t.Errorf("%s: after the command: %v", c.name, errcode.Message(err))
			}
		}
		f.remove(t, c)
	}
	f.unmarked(t)
	for _, c := range f.collisions() {
		if !c.written || strings.Contains(c.name, "StackDefinition") {
			continue // The manager writes StackDefinitions, and keeps those of users, too.
		}
		p, err := f.plan(t, f.Config, true)
		if err != nil {
			t.Fatal(err)
		}
		f.Create(t, c.object)
		err = p.Run(t.Context(), env.Limit, func(string, ...any) {}, func(s *migration.Step) error {
			if strings.HasPrefix(s.Title, "Let the manager") {
				return errInterrupted
			}
			return nil
		})
		c.refused(t, "run", err)
		f.unchanged(t, c)
		f.remove(t, c)
	}
	f.startManager(t, f.isInstalled)
	if err := f.migrate(t, f.Config, 0, true); err != nil {
		t.Fatal(err)
	}
	f.check(t)
}

// unmarked checks that CRDs, records and Deployments without the marks of a former package manager are refused,
// although they are those that a record or its status names.
func (f *former) unmarked(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "things." + f.packages[0] + ".example.org",
	}}
	record := object(packagesv1alpha1.Group, "Package", namespace, f.packages[0])
	stack := object(packagesv1alpha1.EarlierGroup, "Stack", f.team, f.packages[1])
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.team, Name: f.packages[1]}}
	for _, c := range []collision{
		{"CRD", crd, []string{"ClusterPackageInstall " + namespace + "/" + f.packages[0]}, true, true},
		{"record", record, []string{"Package " + namespace + "/" + f.packages[0]}, true, true},
		{"Stack", stack, []string{"Stack " + f.team + "/" + f.packages[1]}, true, true},
		{"Deployment", d, []string{"deployments.apps " + f.team + "/" + f.packages[1]}, true, true},
	} {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object); err != nil {
			t.Fatal(err)
		}
		owners, labels := c.object.GetOwnerReferences(), c.object.GetLabels()
		mark := func(owners []metav1.OwnerReference, labels map[string]string) {
			env.Update(t, f.Env, c.object, func(o client.Object) {
				o.SetOwnerReferences(owners)
				o.SetLabels(labels)
			})
		}
		mark(nil, nil)
		_, err := f.plan(t, f.Config, true)
		c.refused(t, "unmarked", err)
		f.unchanged(t, c)
		if err != nil {
			f.remedy(t, c, err)
			if _, err := f.plan(t, f.Config, true); err != nil {
				t.Errorf("%s: after the command: %v", c.name, errcode.Message(err))
			}
		}
		mark(owners, labels)
	}
	f.foreignController(t, crd)
}

// foreignController checks that a CRD that another object controls is refused.
func (f *former) foreignController(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	owners := crd.OwnerReferences
	namespaceOf := &corev1.Namespace{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Name: f.team}, namespaceOf); err != nil {
		t.Fatal(err)
	}
	own := func(owners []metav1.OwnerReference) {
		env.Update(t, f.Env, crd, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.OwnerReferences = owners })
	}
	own([]metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Namespace", Name: f.team, UID: namespaceOf.UID, Controller: new(true),
	}})
	c := collision{name: "CRD of another object", object: crd, says: []string{"which belongs to Namespace " + f.team}}
	_, err := f.plan(t, f.Config, true)
	c.refused(t, "plan", err)
	f.unchanged(t, c)
	own(owners)
}

// After an interruption at any write, an object of a user with a name that is still free is refused and kept as before.
// What the interrupted migration made is used again.
func TestInterruptedMigrationTakesNoObjectOfAUser(t *testing.T) {
	lane.Full(t, "test/firstgeneration/move.TestClusterIsMovedWithoutLosingAnObject")
	for name, tt := range map[string]struct {
		kind fault.Kind
		// least is the number of interruptions that a migration has at least. Writes whose answers are lost are done.
		least int
	}{"errors": {fault.ServerError, 8}, "lost": {fault.LostAnswer, 4}} {
		t.Run(name, func(t *testing.T) {
			f := newFormer(t, "users"+name)
			network, failed, refusals := fault.New(fault.SingleSubject("migration")), map[string]bool{}, 0
			cfg := rest.CopyConfig(f.Config)
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
			for {
				network.Set("migration", fault.Fault{
					Kind: tt.kind, Filter: func(c fault.Call) bool { return c.Method != http.MethodGet && !failed[c.String()] },
				})
				err := f.migrate(t, cfg, 0, false)
				call, injected := network.Injected("migration")
				if !injected {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				failed[call.String()] = true
				refusals += f.refuseEach(t)
			}
			refusals += f.refuseEach(t)
			t.Logf("%d interruptions, %d refusals", len(failed), refusals)
			if len(failed) < tt.least || refusals < len(failed) {
				t.Errorf("%d interruptions, and %d refusals", len(failed), refusals)
			}
			audit := &env.Audit{}
			if err := f.migrate(t, audit.Wrap(f.Config), 0, false); err != nil || len(audit.Writes("")) > 0 {
				t.Errorf("the repetition writes %v (%v)", audit.Writes(""), err)
			}
			f.startManager(t, f.isServed)
			f.check(t)
		})
	}
}

// refuseEach creates, one after the other, the objects of users whose names are free and that the migration writes in a
// cluster whose manager is started later. It returns their number.
func (f *former) refuseEach(t *testing.T) int {
	t.Helper()
	refusals := 0
	for _, c := range f.collisions() {
		if !c.written || strings.Contains(c.name, "manager") {
			continue
		}
		err := f.Client.Create(t.Context(), c.object)
		if apierrors.IsAlreadyExists(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.plan(t, f.Config, false)
		if !errors.Is(err, migration.ErrRefused) {
			t.Errorf("%s: error %v", c.name, err)
		}
		f.unchanged(t, c)
		f.remove(t, c)
		refusals++
	}
	return refusals
}
