package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// boats returns a CRD that stores v1beta1 and serves v1 too.
func boats(group string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "boats." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "Boat", ListKind: "BoatList", Plural: "boats", Singular: "boat",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", true), version("v1", false)},
		},
	}
	return crd
}

func version(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	}
}

func marshal(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) []byte {
	t.Helper()
	raw, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Before the first write, the plan predicts the response of the API server to every
// change of a CRD.
//
// hardening: E9, I-3
func TestPreflightKnowsWhatTheAPIServerRejects(t *testing.T) {
	type spec = apiextensionsv1.CustomResourceDefinitionSpec
	only := func(s *spec, versions ...apiextensionsv1.CustomResourceDefinitionVersion) { s.Versions = versions }
	for name, tc := range map[string]struct {
		change func(*spec)
		// resource reports that a custom resource exists.
		resource bool
		want     plan.Cause
		refused  bool
	}{
		"Scope": {
			change: func(s *spec) { s.Scope = apiextensionsv1.NamespaceScoped }, want: plan.ImmutableField, refused: true,
		},
		"Kind":       {change: func(s *spec) { s.Names.Kind = "Ship" }, want: plan.ImmutableField, refused: true},
		"ListKind":   {change: func(s *spec) { s.Names.ListKind = "Fleet" }},
		"Singular":   {change: func(s *spec) { s.Names.Singular = "ship" }},
		"ShortNames": {change: func(s *spec) { s.Names.ShortNames = []string{"bt"} }},
		"NewVersion": {change: func(s *spec) { s.Versions = append(s.Versions, version("v2", false)) }},
		"StorageMoves": {
			change: func(s *spec) { only(s, version("v1beta1", false), version("v1", true)) }, resource: true,
		},
		"UnstoredDropped":     {change: func(s *spec) { only(s, version("v1beta1", true)) }, resource: true},
		"StoredDropped":       {change: func(s *spec) { only(s, version("v1", true)) }, resource: true},
		"StoredDroppedEmpty":  {change: func(s *spec) { only(s, version("v1", true)) }},
		"StoredReplacedEmpty": {change: func(s *spec) { only(s, version("v2", true)) }},
		"StoredReplaced":      {change: func(s *spec) { only(s, version("v2", true)) }, resource: true},
		"StoredReplacedByWebhook": {
			change: func(s *spec) {
				only(s, version("v2", true))
				s.Conversion = &apiextensionsv1.CustomResourceConversion{
					Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
						ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{
							Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "boats"},
						},
					},
				}
			}, resource: true, want: plan.StoredVersionInUse, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := strings.ToLower(name) + ".preflight.test"
			c, ref, crd := newCluster(t, nil), definition("boats."+group), boats(group)
			if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
				t.Fatal(err)
			}
			settled(t, c, ref)
			if tc.resource {
				createBoat(t, group)
			}
			live := one(t, c, ref)
			tc.change(&crd.Spec)
			content := always(marshal(t, crd))
			p, err := c.Preflight(t.Context(), plan.Plan{Changes: []plan.Change{{
				Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
				Annotations: map[string]string{plan.ContentDigestAnnotation: "sha256:new"},
			}}}, content, apply.Breaks{})
			if err != nil {
				t.Fatal(err)
			}
			if refused := len(p.Refusals) > 0; refused != tc.refused || refused && p.Refusals[0].Cause != tc.want {
				t.Fatalf("refusals: %+v", p.Refusals)
			}
			refusals := p.Refusals
			p.Refusals = nil
			_, err = c.Run(t.Context(), p, content)
			if rejected := err != nil; rejected != tc.refused {
				t.Errorf("the plan refuses with %v, and the API server answers %v", refusals, err)
			}
			if err != nil {
				return
			}
			stored := storedVersions(t, ref)
			for _, v := range crd.Spec.Versions {
				if v.Storage && !slices.Contains(stored, v.Name) {
					t.Errorf("status.storedVersions is %v", stored)
				}
			}
			if after := one(t, c, ref); after.Annotations[plan.ContentDigestAnnotation] != "sha256:new" {
				t.Errorf("annotations: %v", after.Annotations)
			}
		})
	}
}

// An update after which the API server would serve no custom resource is refused, although the API server accepts it.
func TestACRDThatServesNothingIsRefused(t *testing.T) {
	const group = "dark.preflight.test"
	c, ref, crd := newCluster(t, nil), definition("boats."+group), boats(group)
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	live := one(t, c, ref)
	served := always(marshal(t, crd))
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	dark := always(marshal(t, crd))
	p, err := c.Preflight(t.Context(), plan.Plan{Changes: []plan.Change{{
		Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
	}}}, dark, apply.Breaks{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Refusals) != 1 || p.Refusals[0].Cause != plan.NoServedVersion ||
		!errors.Is(apply.Refused(p.Refusals, "it"), check.ErrUnserved) {
		t.Errorf("refusals: %+v", p.Refusals)
	}
	// The content of a new CRD is only read if the API server does not serve it.
	if got, err := apply.Unserved([]string{ref.Name}, served); err != nil || len(got) > 0 {
		t.Errorf("a served CRD: %+v, %v", got, err)
	}
	if got, err := apply.Unserved([]string{ref.Name}, dark); err != nil || len(got) != 1 {
		t.Errorf("a CRD that serves nothing: %+v, %v", got, err)
	}
}

func storedVersions(t *testing.T, ref plan.Ref) []string {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if err := other(t).Get(t.Context(), client.ObjectKey{Name: ref.Name}, o); err != nil {
		t.Fatal(err)
	}
	stored, _, err := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// createBoat creates a custom resource once the API server takes it.
func createBoat(t testing.TB, group string) {
	t.Helper()
	wait.Until(t, limit, "a boat can be created", func() (string, bool) {
		boat := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": "one"},
		}}
		err := other(t).Create(t.Context(), boat)
		return fmt.Sprint(err), err == nil
	})
}

// A CRD is refused when another CRD of its group has one of its names: the API server
// would accept it and never serve it.
func TestPreflightRefusesNamesThatAreTaken(t *testing.T) {
	const group = "names.preflight.test"
	c, ref, crd := newCluster(t, nil), definition("boats."+group), boats(group)
	crd.Spec.Names.ShortNames = []string{"bt"}
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	for name, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinitionNames)
		taken  bool
	}{
		"Kind":      {func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.Kind = "Boat" }, true},
		"ListKind":  {func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.ListKind = "BoatList" }, true},
		"Singular":  {func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.Singular = "boat" }, true},
		"ShortName": {func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.ShortNames = []string{"s", "bt"} }, true},
		"Free":      {func(*apiextensionsv1.CustomResourceDefinitionNames) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ship := boats(group)
			ship.Name = "ships." + group
			ship.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "Ship", ListKind: "ShipList", Plural: "ships", Singular: "ship",
			}
			tc.change(&ship.Spec.Names)
			p := plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: definition(ship.Name)}}}
			p, err := c.Preflight(t.Context(), p, always(marshal(t, ship)), apply.Breaks{})
			if err != nil {
				t.Fatal(err)
			}
			if taken := len(p.Refusals) > 0; taken != tc.taken || taken && p.Refusals[0].Cause != plan.NameTaken {
				t.Fatalf("refusals: %+v", p.Refusals)
			}
			p.Refusals = nil
			if err := run(t, c, marshal(t, ship), p.Changes[0]); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, limit, "the API server decides about the names", func() (string, bool) {
				why, err := c.WhyNotEstablished(t.Context(), ship.Name)
				served, serr := c.Served(t.Context(), 0)
				is := served[schema.GroupResource{Group: group, Resource: "ships"}]
				return fmt.Sprint(why, err, serr, is), is != tc.taken && (is || strings.Contains(why, "already in use"))
			})
			remove(t, definition(ship.Name))
		})
	}
}

// A CRD, XRD or MRD with a version that an aggregated API serves is refused, and the refusal names the APIService: the
// API server would accept the CRD and never serve it.
func TestPreflightRefusesVersionsOfAggregatedAPIs(t *testing.T) {
	const group = "aggregated.preflight.test"
	c := newCluster(t, nil)
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "marina", "name": "boats"},
		},
	}}
	if err := other(t).Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other(t).Delete(context.WithoutCancel(t.Context()), service); err != nil {
			t.Error(err)
		}
	})
	named := func(kind string) plan.Ref {
		return plan.Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: kind, Name: "boats." + group}
	}
	aggregated, free, stopped := boats(group), boats(group), boats(group)
	free.Spec.Versions[1].Name = "v2"
	stopped.Spec.Versions[1].Served = false
	elsewhere := boats("free.preflight.test")
	for name, tc := range map[string]struct {
		crd     *apiextensionsv1.CustomResourceDefinition
		ref     plan.Ref
		refused bool
	}{
		"CRD":          {aggregated, definition(aggregated.Name), true},
		"XRD":          {aggregated, named("CompositeResourceDefinition"), true},
		"OtherVersion": {free, definition(free.Name), false},
		"NotServed":    {stopped, definition(stopped.Name), false}, "OtherGroup": {elsewhere, definition(elsewhere.Name), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range []plan.Action{plan.Create, plan.Update} {
				p, err := c.Preflight(
					t.Context(), plan.Plan{Changes: []plan.Change{{Action: action, Ref: tc.ref}}}, always(marshal(t, tc.crd)), apply.Breaks{},
				)
				if err != nil {
					t.Fatal(err)
				}
				refused := len(p.Refusals) == 1 && p.Refusals[0].Cause == plan.AggregatedAPI
				if refused != tc.refused || len(p.Refusals) > 1 {
					t.Fatalf("refusals of %s: %+v", action, p.Refusals)
				}
				if !refused {
					continue
				}
				failed := apply.Refused(p.Refusals, "refused")
				for _, want := range []string{"APIService v1." + group, "marina/boats"} {
					if !strings.Contains(failed.Error(), want) {
						t.Errorf("the error does not name %s: %v", want, failed)
					}
				}
				if want := "kubectl delete apiservice v1." + group; !strings.Contains(failed.Do, want) {
					t.Errorf("the advice %q has no command %q", failed.Do, want)
				}
			}
		})
	}
	// The API server accepts the CRD, serves the other version, and sends the requests of this one to the aggregated API.
	if err := run(t, c, marshal(t, aggregated), plan.Change{
		Action: plan.Create, Ref: definition(aggregated.Name),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, definition(aggregated.Name)) })
	list := func(version string) error {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "BoatList"})
		return other(t).List(t.Context(), l)
	}
	wait.Until(t, limit, "the API server serves v1beta1", func() (string, bool) {
		err := list("v1beta1")
		return fmt.Sprint(err), err == nil
	})
	if err := list("v1"); err == nil {
		t.Error("the API server serves the version of the aggregated API")
	}
}

// A refusal has its own code, and its commands are the advice.
func TestCodesOfRefusals(t *testing.T) {
	foreign := plan.Refusal{Holder: "Provider/other", Reason: "a"}
	deleting, fixed := plan.Refusal{Cause: plan.Deleting, Reason: "b"},
		plan.Refusal{Cause: plan.ImmutableField, Reason: "c"}
	stored := plan.Refusal{Cause: plan.StoredVersionInUse, Reason: "d", Fix: "kubectl patch %s"}
	for _, tc := range []struct {
		refusals []plan.Refusal
		want     errcode.Code
	}{
		{[]plan.Refusal{foreign, fixed}, apply.ErrRefused}, {[]plan.Refusal{deleting}, apply.ErrDeleting},
		{[]plan.Refusal{deleting, stored, fixed}, apply.ErrImmutable}, {[]plan.Refusal{stored}, apply.ErrStoredVersion},
		{[]plan.Refusal{{Cause: plan.NameTaken}}, apply.ErrNameTaken},
		{[]plan.Refusal{{Cause: plan.AggregatedAPI}}, apply.ErrAggregated},
	} {
		err := apply.Refused(tc.refusals, "refused")
		if err.Code.Name != tc.want.Name {
			t.Errorf("%v: got the code %s, want %s", tc.refusals, err.Code.Name, tc.want.Name)
		}
	}
	if err := apply.Refused([]plan.Refusal{stored}, "refused"); err.Do != stored.Fix {
		t.Errorf("got the advice %q", err.Do)
	}
	for name, refusals := range map[string][]plan.Refusal{
		"xpkg update provider/other": {foreign, foreign}, "": {foreign, {Holder: "Function/b"}},
		"?": {{Holder: "Release/tools"}},
	} {
		if do := apply.Refused(refusals, "refused").Do; strings.Contains(
			do, "`xpkg update",
		) != (name == "xpkg update provider/other") || !strings.Contains(do, "update") {
			t.Errorf("%s: got the advice %q", name, do)
		}
	}
}
