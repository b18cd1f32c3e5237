package controller_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A version that breaks custom resources is refused before the first write, also without a command, and the condition
// says what to do. It is installed when they no longer break, or when an annotation of the package accepts that they do.
func TestAnUpdateThatBreaksCustomResourcesWaits(t *testing.T) {
	for name, resolve := range map[string]func(*testing.T, *testEnv, *v1.Provider, *unstructured.Unstructured){
		"breaks-accepted": func(t *testing.T, s *testEnv, p *v1.Provider, _ *unstructured.Unstructured) {
			annotate := func(value string) {
				env.Update(t, s.Env, p, func(p *v1.Provider) {
					metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationAcceptBreaks, value)
				})
			}
			annotate("things.breaks-accepted.test/FieldRemoved@v1; things.breaks-accepted.test/FieldRemoved; things.breaks-accepted.test/TypeChanged@v2")
			untilUpdateRefused(t, s, p, "BreaksObjects")
			annotate("things.breaks-accepted.test/FieldRemoved@v2")
		},
		"breaks-deleted": func(t *testing.T, s *testEnv, _ *v1.Provider, thing *unstructured.Unstructured) {
			deleteNow(t, s, thing)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.options.ActivationDeadline = time.Hour
			r := newRegistry(t)
			group := name + ".test"
			stream := func(description, schema string) string {
				return provider(name, crd(group, "Other", description), strings.Replace(
					crd(group, "Thing", description), "{type: object, x-kubernetes-preserve-unknown-fields: true}", schema, 1,
				))
			}
			first, _ := r.push(t, "acme/"+name+":v1", stream("one", "{type: object, properties: {acl: {type: string}}}"))
			second, _ := r.push(t, "acme/"+name+":v2", stream("two", "{type: object}"))
			s.start(t)
			p := env.NewProvider(name, first)
			s.CreateTemporary(t, p)
			untilSettled(t, s, p)
			thing := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "t"},
				"spec": map[string]any{"acl": "private"},
			}}
			s.Create(t, thing)
			s.audit.Reset(group)
			env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
			untilUpdateRefused(t, s, p, "BreaksObjects")
			message := p.GetCondition(v1.TypeReady).Message
			for _, part := range []string{
				"things." + group + " breaks 1 of 1 Things: t: .spec.acl is removed and has a value",
				"run `xpkg update provider/" + name + " " + second + " --accept things." + group + "/FieldRemoved`",
			} {
				if !strings.Contains(message, part) {
					t.Errorf("the message lacks %q: %s", part, message)
				}
			}
			for _, c := range s.audit.Calls(group) {
				if c.Method != "GET" && !c.DryRun {
					t.Errorf("the refused update wrote: %s", c)
				}
			}
			resolve(t, s, p, thing)
			untilSettled(t, s, p)
			for _, kind := range []string{"others.", "things."} {
				if got := schemaDescription(t, s, kind+group); got != "two" {
					t.Errorf("%s is of version %s", kind+group, got)
				}
			}
			remove(t, s, p)
		})
	}
}

// An XRD is judged by the composite resources: with the CRD that Crossplane makes of it, whose own fields stay.
func TestAnXRDThatBreaksCompositesWaits(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	const name, group = "breaks-composites", "breaks-composites.test"
	stream := func(text, schema string) string {
		return strings.Replace(configuration(name, group, text), "spec: {type: object}", "spec: "+schema, 1)
	}
	former := stream("one", "{type: object, properties: {acl: {type: string}, color: {type: string}}}")
	first, _ := r.push(t, "acme/"+name+":v1", former)
	second, _ := r.push(t, "acme/"+name+":v2", stream("two", "{type: object, properties: {color: {type: string}}}"))
	third, _ := r.push(t, "acme/"+name+":v3", stream("three", "{type: object, properties: {acl: {type: string}}}"))
	s.start(t)
	p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = first
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)

	_, xrd, _ := strings.Cut(former, "---\n")
	raw, err := yaml.YAMLToJSON([]byte(xrd))
	if err != nil {
		t.Fatal(err)
	}
	composites, err := crdvalidation.CompositeCRDs(raw)
	if err != nil || len(composites) != 1 {
		t.Fatal(len(composites), err)
	}
	composite := &unstructured.Unstructured{}
	if err := composite.UnmarshalJSON(composites[0]); err != nil {
		t.Fatal(err)
	}
	composite.SetName("xthings." + group)
	s.Create(t, composite)
	thing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "XThing", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"acl": "private", "compositionRef": map[string]any{"name": "any"}},
	}}
	eventually(t, "the composite resource can be created", func() bool { return s.Client.Create(t.Context(), thing) == nil })

	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = second })
	untilUpdateRefused(t, s, p, "BreaksObjects")
	want := "CompositeResourceDefinition xthings." + group + " breaks 1 of 1 XThings: x: .spec.acl is removed and has a value"
	if m := p.GetCondition(v1.TypeReady).Message; !strings.Contains(m, want) {
		t.Errorf("the message is %s", m)
	}
	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = third })
	untilSettled(t, s, p)
	s.Delete(t, thing, composite)
	remove(t, s, p)
}
