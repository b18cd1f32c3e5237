package planner

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// answers are the responses of an API server, by path.
type answers map[string]struct {
	code int
	body any
}

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got, ok := a[r.URL.Path]
	if !ok {
		got.code, got.body = http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(got.code)
	_ = json.NewEncoder(w).Encode(got.body)
}

func page(items int, rest *int64, next string) metav1.PartialObjectMetadataList {
	return metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{RemainingItemCount: rest, Continue: next},
		Items:    make([]metav1.PartialObjectMetadata, items),
	}
}

func forbidden() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	}
}

// failedConversion returns the response for custom resources that a webhook refuses to
// convert.
func failedConversion() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code:   http.StatusInternalServerError,
		Reason: "StorageError", Message: "conversion webhook for a.test/v1, Kind=Refused failed: no way",
	}
}

// discovery serves these resources of the group a.test, in two versions.
func discovery(resources ...string) apidiscovery.APIGroupDiscoveryList {
	var all []apidiscovery.APIResourceDiscovery
	for _, r := range resources {
		all = append(all, apidiscovery.APIResourceDiscovery{Resource: r})
	}
	return apidiscovery.APIGroupDiscoveryList{Items: []apidiscovery.APIGroupDiscovery{{
		ObjectMeta: metav1.ObjectMeta{Name: "a.test"},
		Versions:   []apidiscovery.APIVersionDiscovery{{Version: "v2", Resources: all}, {Version: "v1", Resources: all}},
	}}}
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// definition returns a CRD of the group a.test whose version v2 is served or not.
func definition(plural string, served bool) apiextensionsv1.CustomResourceDefinition {
	return apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "a.test", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Served: served}},
	}}
}

func serve(t *testing.T, a http.Handler) Cluster {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	c, err := NewCluster(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hardening: I-12
func TestCount(t *testing.T) {
	names := []string{
		"nones.a.test", "ones.a.test", "manys.a.test", "forbiddens.a.test", "refuseds.a.test", "unclears.a.test",
		"goings.a.test", "unserveds.a.test", "news.a.test", "hiddens.a.test",
	}
	c := serve(t, answers{
		"/apis": {
			http.StatusOK, discovery("nones", "ones", "manys", "forbiddens", "refuseds", "unclears", "goings"),
		},
		"/apis/a.test/v2/nones":        {http.StatusOK, page(0, nil, "")},
		"/apis/a.test/v2/ones":         {http.StatusOK, page(1, nil, "")},
		"/apis/a.test/v2/manys":        {http.StatusOK, page(1, new(int64(411)), "next")},
		"/apis/a.test/v2/forbiddens":   {http.StatusForbidden, forbidden()},
		"/apis/a.test/v2/refuseds":     {http.StatusInternalServerError, failedConversion()},
		"/apis/a.test/v2/unclears":     {http.StatusOK, page(1, nil, "next")},
		"/apis/a.test/v2/news":         {http.StatusOK, page(1, nil, "")},
		definitions + "news.a.test":    {http.StatusOK, definition("news", true)},
		definitions + "hiddens.a.test": {http.StatusOK, definition("hiddens", false)},
	})
	got, err := c.CustomResources(t.Context(), names, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []CustomResources{
		{CRD: "ones.a.test", Count: 1}, {CRD: "manys.a.test", Count: 412},
		{CRD: "forbiddens.a.test", Unknown: "they may not be listed"},
		{CRD: "refuseds.a.test", Unknown: "the API server cannot read them"},
		{CRD: "unclears.a.test", Count: 1, Unknown: "the API server does not return their number"},
		{CRD: "news.a.test", Count: 1},
		{CRD: "hiddens.a.test", Unknown: "the CRD serves no version"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(CustomResources{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	identified, err := c.CustomResources(
		t.Context(), []string{"nones.a.test", "ones.a.test", "forbiddens.a.test", "news.a.test", "hiddens.a.test"}, true,
	)
	if err != nil || len(identified) != 4 || identified[0].Count != 1 || identified[0].Digest == "" ||
		identified[1].Unknown == "" || identified[2].Digest == "" || identified[3].Unknown == "" {
		t.Errorf("identified: %+v, %v", identified, err)
	}
	if got, err := c.CustomResources(t.Context(), nil, false); got != nil || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	p := &Plan{CustomResources: want}
	if resources, uncounted := p.CountCustomResources(); resources != 415 || uncounted != 4 {
		t.Errorf("%d lost, and %d uncounted", resources, uncounted)
	}
}

// All pages of a list are read, unless there are too many.
func TestIdentifyInPages(t *testing.T) {
	all := 1234
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis" {
			answers{"/apis": {http.StatusOK, discovery("ones")}}.ServeHTTP(w, r)
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		to, next := min(all, from+limit), ""
		var rest *int64
		if to < all {
			next, rest = strconv.Itoa(to), new(int64(all-to))
		}
		p := page(to-from, rest, next)
		for i := range p.Items {
			p.Items[i].UID = types.UID(strconv.Itoa(from + i))
		}
		answers{r.URL.Path: {http.StatusOK, p}}.ServeHTTP(w, r)
	}))
	got, err := c.CustomResources(t.Context(), []string{"ones.a.test"}, true)
	if err != nil || len(got) != 1 || got[0].Count != int64(all) || len(slices.Compact(got[0].uids)) != all {
		t.Errorf("got %d kinds, %v", len(got), err)
	}
	all = mostIdentified + 1
	got, err = c.CustomResources(t.Context(), []string{"ones.a.test"}, true)
	if err != nil || len(got) != 1 || got[0].Count != int64(all) || got[0].Digest != "" {
		t.Errorf("too many to identify: %+v, %v", got, err)
	}
}

// identified returns the custom resources of a CRD with the UIDs.
func identified(definition string, uids ...types.UID) CustomResources {
	out := CustomResources{CRD: definition}
	out.identify(uids)
	return out
}

// A plan recognizes custom resources that were deleted and created again, or replaced by others.
func TestOtherCustomResources(t *testing.T) {
	was := &Plan{Operation: Uninstall, Package: Package{Kind: "Provider", Name: "a"}, CustomResources: []CustomResources{
		identified("ones.a.test", "b", "a"),
	}}
	stored := &Plan{}
	if raw, err := json.Marshal(was); err != nil || json.Unmarshal(raw, stored) != nil {
		t.Fatal(err)
	}
	former := &Plan{Operation: Uninstall, Package: was.Package, CustomResources: []CustomResources{{
		CRD: "ones.a.test", Count: 2,
	}}}
	for name, tc := range map[string]struct {
		now          CustomResources
		asks, stored string
	}{
		"same": {identified("ones.a.test", "a", "b"), "", ""},
		"replaced": {
			identified("ones.a.test", "a", "c"),
			"the set of custom resources of ones.a.test was 2 and is 2, of which 1 did not exist then",
			"the set of custom resources to delete with ones.a.test",
		},
		"fewer": {
			identified("ones.a.test", "c"), "was 2 and is 1, of which 1 did not exist then",
			"the number of custom resources to delete with ones.a.test was 2 and is 1",
		},
		"counted": {CustomResources{CRD: "ones.a.test", Count: 2}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := &Plan{Operation: Uninstall, Package: was.Package, CustomResources: []CustomResources{tc.now}}
			check := func(what, want string, err error) {
				if want == "" && err != nil ||
					want != "" && (!errors.Is(err, ErrPlanMoved) || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			check("after a question", tc.asks, CheckConsequences(was, now))
			check("a stored plan", tc.stored, MovedError(stored, Compare(stored, now)))
			if tc.now.Count == 2 {
				check("a plan of a former version", "", MovedError(former, Compare(former, now)))
			}
		})
	}
}

// An uninstall that a user confirmed deletes no custom resources that were created after its plan.
func TestCustomResourcesAfterThePlan(t *testing.T) {
	p := &Plan{Operation: Uninstall, Package: Package{Kind: "Provider", Name: "a"}, CustomResources: []CustomResources{{
		CRD: "ones.a.test", Count: 2,
	}}}
	for name, tc := range map[string]struct {
		now   []CustomResources
		moved string
	}{
		"same":  {[]CustomResources{{CRD: "ones.a.test", Count: 2}}, ""},
		"fewer": {[]CustomResources{{CRD: "ones.a.test", Count: 1}}, ""},
		"none":  {nil, ""},
		"more": {
			[]CustomResources{{CRD: "ones.a.test", Count: 3}}, "the number of custom resources of ones.a.test was 2 and is 3",
		},
		"another": {
			[]CustomResources{{CRD: "twos.a.test", Count: 1}}, "the number of custom resources of twos.a.test was 0 and is 1",
		},
		"unknown": {
			[]CustomResources{{CRD: "ones.a.test", Unknown: "they may not be listed"}},
			"was 2 and is not known: they may not be listed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckConsequences(p, &Plan{CustomResources: tc.now})
			if tc.moved == "" && err != nil ||
				tc.moved != "" && (!errors.Is(err, ErrPlanMoved) || !strings.Contains(err.Error(), tc.moved)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An uninstall that a user confirmed breaks no dependents that were installed after its plan.
func TestDependentsAfterThePlan(t *testing.T) {
	top := Broken{Kind: "Configuration", Name: "top", Requires: "a.test/base", Constraint: ">=v1"}
	other := Broken{Kind: "Configuration", Name: "other", Requires: "a.test/base"}
	p := &Plan{Operation: Uninstall, Package: Package{Kind: "Provider", Name: "base"}, Breaks: []Broken{top}}
	for name, tc := range map[string]struct {
		now   []Broken
		moved string
	}{
		"same": {[]Broken{top}, ""},
		"none": {nil, ""},
		"another": {
			[]Broken{top, other}, "the requirement of configuration/other for a.test/base was absent and is any version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckConsequences(p, &Plan{Breaks: tc.now})
			if tc.moved == "" && err != nil ||
				tc.moved != "" && (!errors.Is(err, ErrPlanMoved) || !strings.Contains(err.Error(), tc.moved)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	const path = "/api/v1/namespaces/kube-system"
	named := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	for name, tc := range map[string]struct {
		a       answers
		want    string
		failing bool
	}{
		"there":     {answers{path: {http.StatusOK, named}}, "u", false},
		"forbidden": {answers{path: {http.StatusForbidden, forbidden()}}, "", false},
		"absent":    {answers{}, "", false},
		"broken":    {answers{path: {http.StatusInternalServerError, nil}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serve(t, tc.a).Identity(t.Context())
			if string(got) != tc.want || (err != nil) != tc.failing {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
}
