package operation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// interrupting is a cluster in which nothing happens, and whose first read interrupts the command.
type interrupting struct {
	unchanging
	interrupt func()
}

// Get implements client.Reader.
func (c interrupting) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.interrupt()
	return nil
}

// An uninstall that was interrupted cannot be repeated for a package that is deleted meanwhile: the advice is to check
// it, and names the command for the packages that were not deleted yet.
func TestInterruptedUninstallNamesTheRest(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	top, base := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "top"}},
		&v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	err := engineOf(interrupting{interrupt: interrupt}, io.Discard).waitGone(ctx, top, deletionSummary{}, time.Minute)
	if !errors.Is(err, errcode.ErrInterrupted) || !strings.Contains(errcode.From(err).Do, "`xpkg list`") {
		t.Fatalf("got %v (%s)", err, errcode.From(err).Do)
	}
	rest := errcode.From(Operation{}.notUninstalled(err, []*Step{{Live: base, Remove: true}}))
	if rest.Code.Name != errcode.ErrInterrupted.Name || !strings.Contains(rest.Do, "`xpkg uninstall provider/base`") {
		t.Errorf("got %v (%s)", rest, rest.Do)
	}
	orphans := errcode.From(Operation{
		OnlyOrphans: true,
	}.notUninstalled(errcode.ErrInterrupted.New(nil, "stopped"), []*Step{{Live: base, Remove: true}}))
	if strings.Contains(orphans.Do, "uninstall") || !strings.Contains(orphans.Do, "`xpkg autoremove`") {
		t.Errorf("of orphans: %s", orphans.Do)
	}
}

// An operation that fails after some of its steps names them, the advice of the failure, and the command for the rest.
func TestAFailedStepNamesTheFormerOnes(t *testing.T) {
	newProvider := func(name string) v1.Package { return named(v1.ProviderKind, name) }
	mast, rope := newProvider("mast"), newProvider("rope")
	removed := &Done{Step: &Step{Live: mast, Remove: true}, Object: mast, Word: "deleted"}
	updated := &Done{Step: &Step{Live: mast, Want: mast}, Object: mast, Word: "updated"}
	removal, update := []*Step{{Live: rope, Remove: true}}, []*Step{{Live: rope, Want: rope}}
	denied, moved := apply.ErrDenied, planner.ErrPlanMoved
	for _, tc := range []struct {
		name string
		o    Operation
		done *Done
		rest []*Step
		why  errcode.Code
		want string
	}{
		{"denied", Operation{}, removed, removal, denied, apply.ErrDenied.Fix +
			" provider/mast was deleted. For the rest, see `xpkg uninstall provider/rope --dry-run`."},
		{"stale", Operation{}, removed, removal, moved, "provider/mast was deleted. For the rest, see `xpkg uninstall provider/rope --dry-run`."},
		{"orphans", Operation{
			OnlyOrphans: true,
		}, removed, removal, moved, "provider/mast was deleted. For the rest, see `xpkg autoremove --dry-run`."},
		{"update", Operation{}, updated, update, denied, apply.ErrDenied.Fix +
			" provider/mast was updated. For the rest, run the command again: it plans with the current state."},
		{"atomic", Operation{Atomic: true}, updated, update, denied, apply.ErrDenied.Fix},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := errcode.From(tc.o.partlyDone(tc.why.New(nil, "it fails"), []*Done{tc.done}, tc.rest)).Do; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := errcode.From(Operation{}.partlyDone(denied.New(nil, "it fails"), nil, removal)).
		Do; got != apply.ErrDenied.Fix {
		t.Errorf("before the first step: %s", got)
	}
}

// A deleted Provider may come back as long as a PackageInstall that used it is neither refused nor gone, also while its
// status names no A deleted Provider may come back as long as a PackageInstall that used it is neither refused nor
// gone, also while its status names no Provider.
func TestADeletedProviderMayComeBackForItsUsers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := packagesv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	for name, tt := range map[string]struct {
		provider, reason string
		used, want       bool
	}{
		"it names the Provider": {
			provider: "boats", reason: string(packagesv1alpha1.ReasonCreating), want: true,
		},
		"it names another Provider":           {provider: "rafts", reason: string(packagesv1alpha1.ReasonCreating)},
		"it used the Provider and names none": {used: true, reason: string(packagesv1alpha1.ReasonCreating), want: true},
		"it never used the Provider":          {reason: string(packagesv1alpha1.ReasonCreating)},
		"it is not allowed any more":          {provider: "boats", used: true, reason: firstgen.ErrNotAllowed.Name},
		"it finds no package":                 {used: true, reason: provide.ErrNoProvider.Name},
	} {
		in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
		in.SetNamespace("team")
		in.SetName("boats")
		in.SetUID("u")
		in.InstallStatus().Provider = tt.provider
		in.SetConditions(metav1.Now(), v1.Condition{
			Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: v1.ConditionReason(tt.reason),
		})
		with := deletionSummary{}
		if tt.used {
			with.users = []types.UID{"u"}
		}
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).Build()
		if got := (&Engine{Client: cluster, Frontend: firstgen.Frontend()}).undecided(t.Context(), p, with); got != tt.want {
			t.Errorf("%s: undecided %t, want %t", name, got, tt.want)
		}
	}
}

// An uninstall that does not wait counts the CRDs that are deleted: not those that another package owns too, or that a
// user created.
func TestUninstallNamesTheDefinitionsThatRemain(t *testing.T) {
	definition := func(name string) plan.Ref { return plan.Ref{Kind: plan.DefinitionKind, Name: name} }
	change := func(a plan.Action, name string) plan.Change { return plan.Change{Action: a, Ref: definition(name)} }
	planned := func(changes ...plan.Change) *planner.Plan { return &planner.Plan{Objects: plan.Plan{Changes: changes}} }
	note := func(text string) string {
		return "note: Kubernetes deletes " + text + " in the background; with --wait, the command ends when they are gone\n"
	}
	for name, tc := range map[string]struct {
		listed  []plan.Ref
		planned *planner.Plan
		want    string
	}{
		"without CRDs": {[]plan.Ref{{Kind: "Composition", Name: "a"}}, nil, ""},
		"without a plan": {
			[]plan.Ref{definition("a"), definition("b")}, nil, note("the CRDs that belong to provider/base alone"),
		},
		"with a plan": {[]plan.Ref{definition("a"), definition("b")}, planned(
			change(plan.Delete, "a"), change(plan.Leave, "b"), change(plan.Delete, "c"),
		), note("2 CRDs of provider/base")},
		"owned by other packages": {[]plan.Ref{definition("a")}, planned(change(plan.Leave, "a")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			base := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
			engineOf(nil, &out).noteDefinitions(deletionSummary{objects: tc.listed}, base, tc.planned)
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", out.String(), tc.want)
			}
		})
	}
}

// The revisions of an interrupted install do not list the objects that it has created. They are found by their owner,
// whatever their kind is.
func TestUninstallFindsObjectsThatNoRevisionLists(t *testing.T) {
	base := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "base", UID: "u"}}
	list := `{"items": [
		{"metadata": {"name": "boats.test", "ownerReferences": [{"kind": "Configuration", "name": "base", "uid": "u"}]}},
		{"metadata": {"name": "rafts.test", "ownerReferences": [{"kind": "Configuration", "name": "other", "uid": "v"}]}}]}`
	for path, kind := range map[string]string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":                      "CustomResourceDefinition",
		"/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions":            "CompositeResourceDefinition",
		"/apis/apiextensions.crossplane.io/v1/compositions":                            "Composition",
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations":        "ValidatingWebhookConfiguration",
		"/apis/apiextensions.crossplane.io/v1alpha1/managedresourceactivationpolicies": "ManagedResourceActivationPolicy",
		"none is left": "",
	} {
		for name, rest := range map[string]struct {
			code int
			body string
		}{
			"the other kinds have no objects": {http.StatusOK, `{"items": []}`},
			"the user may not list the other kinds": {http.StatusForbidden,
				`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`},
			"the other kinds are not served": {http.StatusNotFound, "404 page not found"},
		} {
			objects := clusterOf(t, func(r *http.Request) (int, string) {
				if r.URL.Path == path {
					return http.StatusOK, list
				}
				return rest.code, rest.body
			})
			var with deletionSummary
			found, err := with.addObjects(t.Context(), objects, base)
			if err != nil || found != (kind != "") ||
				found != (len(with.objects) == 1 && with.objects[0].Name == "boats.test" && with.objects[0].Kind == kind) {
				t.Errorf("%s, %s: got %t, %v, %v", path, name, found, with.objects, err)
			}
		}
	}
}

// clusterOf returns a cluster whose API server responds with the status and the body of a function.
func clusterOf(t *testing.T, respond func(*http.Request) (int, string)) *apply.Cluster {
	t.Helper()
	objects, err := apply.NewCluster(&rest.Config{
		Host: "http://cluster.test", Transport: roundTripper(func(r *http.Request) *http.Response {
			code, body := respond(r)
			w := httptest.NewRecorder()
			if strings.HasPrefix(body, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(code)
			_, _ = w.WriteString(body)
			return w.Result()
		})})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// roundTripper responds to requests.
type roundTripper func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
