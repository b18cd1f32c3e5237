package controller_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A version that breaks custom resources is refused before the first write, also without a command, and the condition
// says what to do. It is installed once they do not break, or once the annotation of the package accepts it.
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
