package firstgen_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func parseTemplating(text string) (*firstgen.Templating, error) {
	return firstgen.ParseTemplating(map[string]string{xpkg.AnnotationTemplating: text})
}

// The converted metadata contains everything with which an install object runs the templating controller.
func TestTemplatingControllersOfPublishedPackagesSurviveTheConversion(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "legacy-v1", "*", ".registry", "behavior.yaml"))
	if err != nil || len(files) != 23 {
		t.Fatalf("the corpus has %d packages with templates, want 23 (%v)", len(files), err)
	}
	for _, file := range files {
		tree := filepath.Dir(filepath.Dir(file))
		pkg, err := read(t, os.DirFS(tree), firstgen.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, converted := convert(t, pkg, firstgen.ConvertOptions{})
		got, err := firstgen.ParseTemplating(converted.Meta.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		if got == nil || got.Source.Path != "helm-chart" || got.Engine.Type != "helm3" || got.CRD != pkg.Behavior.CRD ||
			len(got.DependsOn) != len(pkg.App.DependsOn) {
			t.Errorf("%s: the templating controller is %+v", filepath.Base(tree), got)
		}
		if diff := cmp.Diff(c.Templating, got); diff != "" {
			t.Errorf("%s: %s", filepath.Base(tree), diff)
		}
		for _, f := range pkg.Findings {
			if f.Code.Name == firstgen.ErrInvalidBehavior.Name {
				t.Errorf("%s: %s", filepath.Base(tree), f.Message)
			}
		}
	}
}

// A Deployment takes precedence over templates, as install.yaml describes the whole controller.
func TestTemplatesBesideADeploymentAreReported(t *testing.T) {
	files := map[string]string{
		"install.yaml":  deployment,
		"behavior.yaml": "source: {path: chart}\ncrd: {kind: Thing, apiVersion: a.example.org/v1}\nengine: {type: helm3}\n",
	}
	c, got := convert(t, mustRead(t, files, firstgen.Options{}), firstgen.ConvertOptions{})
	if templating, err := firstgen.ParseTemplating(got.Meta.Annotations); templating != nil || err != nil {
		t.Errorf("%+v, %v", templating, err)
	}
	for _, l := range c.Losses {
		if l.Reason == firstgen.ReasonTemplating {
			return
		}
	}
	t.Errorf("losses %v", c.Losses)
}

func TestTemplatesForAForeignKindAreAWarning(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"behavior.yaml": "source: {path: chart}\ncrd: {kind: Other, apiVersion: a.example.org/v1}\nengine: {type: helm3}\n",
	}, firstgen.Options{})
	if len(pkg.Findings) != 1 || pkg.Findings[0].Severity != xpkg.Warning ||
		pkg.Findings[0].Code.Name != firstgen.ErrInvalidBehavior.Name {
		t.Errorf("findings %v", pkg.Findings)
	}
}

func TestInvalidTemplatingControllersAreRefused(t *testing.T) {
	const valid = `{"source":{"path":"chart"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"helm3"},"dependsOn":["*.b.example.org/v1"]}`
	if got, err := parseTemplating(valid); err != nil || got == nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"not JSON":      "a: b",
		"unknown field": strings.Replace(valid, `"type"`, `"privileged":true,"type"`, 1),
		"no path":       strings.Replace(valid, `"chart"`, `""`, 1),
		"whole image":   strings.Replace(valid, `"chart"`, `"/."`, 1),
		"this folder":   strings.Replace(valid, `"chart"`, `"chart/.."`, 1),
		"no engine":     strings.Replace(valid, `"helm3"`, `""`, 1),
		"core kind":     strings.Replace(valid, `a.example.org/v1`, `v1`, 1),
		"API version":   strings.Replace(valid, `a.example.org/v1`, `a/b/c`, 1),
		"image":         strings.Replace(valid, `"path"`, `"image":"Not An Image","path"`, 1),
		"dependency":    strings.Replace(valid, `*.b.example.org/v1`, `b`, 1),
		"too large":     strings.Replace(valid, `"chart"`, `"`+strings.Repeat("a", 70<<10)+`"`, 1),
	} {
		if got, err := parseTemplating(text); !errors.Is(err, firstgen.ErrInvalidBehavior) || got != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// FuzzParseTemplating checks that an accepted annotation is accepted again after it is encoded, with the same meaning.
func FuzzParseTemplating(f *testing.F) {
	f.Add(
		`{"source":{"path":"chart"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"kustomize","kustomize":{"overlays":[]}}}`,
	)
	f.Add(
		`{"source":{"image":"a/b:v1","path":"/x"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"helm3"},"dependsOn":["as.b.example.org"]}`,
	)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTemplating(text)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTemplating(string(encoded))
		if err != nil {
			if len(encoded) > 64<<10 {
				return // The encoding escapes more characters.
			}
			t.Fatal(err)
		}
		one, _ := json.Marshal(again)
		if string(one) != string(encoded) {
			t.Errorf("%s becomes %s", encoded, one)
		}
	})
}
