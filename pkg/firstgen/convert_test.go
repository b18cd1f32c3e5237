package firstgen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// convert converts a package, and reads the result as a package manager does.
func convert(t testing.TB, pkg *firstgen.Package, opts firstgen.ConvertOptions) (*firstgen.Conversion, *xpkg.Package) {
	t.Helper()
	c, err := firstgen.Convert(pkg, opts)
	if err != nil {
		t.Fatal(err)
	}
	read, err := xpkg.Read(c.Stream(), xpkg.ReadOptions{Policy: xpkg.PolicyInstall()})
	if err != nil {
		t.Fatalf("the converted package is refused: %v", err)
	}
	findings := check.Package(read, check.Options{Policy: xpkg.PolicyInstall(), CRDs: crdvalidation.ValidateCRD})
	if err := xpkg.Failed(findings); err != nil {
		t.Fatalf("the converted package is refused: %v", err)
	}
	return c, read
}

func defaultsOf(t testing.TB, pkg *xpkg.Package) *runtimedefaults.Defaults {
	t.Helper()
	d, err := runtimedefaults.Parse(pkg.Meta.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMetadataIsConvertedToAProvider(t *testing.T) {
	pkg := mustRead(t, map[string]string{"app.yaml": `
apiVersion: 1.1.0
version: 0.0.1
title: Sample Stack!
overviewShort: short
overview: long
readme: "# Sample"
maintainers: [{name: Jane, email: jane@example.org}, {name: Joe}]
owners: [{name: Ann, email: ann@example.org}]
company: Acme
category: Database
keywords: [a, b]
website: https://example.org
source: https://example.org/source
license: Apache-2.0
packageType: Provider
permissionScope: Cluster
`, "icon.svg": svg, "ui-schema.yaml": "version: 0.5\n", "install.yaml": deployment}, firstgen.Options{})
	_, got := convert(t, pkg, firstgen.ConvertOptions{})
	want := map[string]string{
		"meta.crossplane.io/maintainer": "Jane <jane@example.org>, Joe",
		"meta.crossplane.io/source":     "https://example.org/source",
		"meta.crossplane.io/license":    "Apache-2.0", "meta.crossplane.io/description": "long",
		"meta.crossplane.io/readme": "# Sample",
		"meta.xpkg.dev/title":       "Sample Stack!", "meta.xpkg.dev/summary": "short", "meta.xpkg.dev/category": "Database",
		"meta.xpkg.dev/company":  "Acme",
		"meta.xpkg.dev/keywords": "a,b", "meta.xpkg.dev/website": "https://example.org",
		"meta.xpkg.dev/owners":        "Ann <ann@example.org>",
		"meta.xpkg.dev/version":       "0.0.1",
		"meta.xpkg.dev/icon-data-uri": firstgen.Icon{MediaType: "image/svg+xml", Data: []byte(svg)}.DataURI(),
		"meta.xpkg.dev/ui-schema":     "version: 0.5\n", "meta.xpkg.dev/first-generation": "1.1.0",
		"meta.xpkg.dev/package-type":           "Provider",
		"meta.xpkg.dev/first-generation-scope": "Cluster",
	}
	delete(got.Meta.Annotations, runtimedefaults.Annotation)
	if diff := cmp.Diff(want, got.Meta.Annotations); diff != "" {
		t.Error(diff)
	}
	if got.Meta.Kind != xpkg.Provider || got.Meta.APIVersion != "meta.pkg.crossplane.io/v1" ||
		got.Meta.Name != "sample-stack" {
		t.Errorf("%s %s %s", got.Meta.APIVersion, got.Meta.Kind, got.Meta.Name)
	}
	if p := got.Meta.Presentation(); p.Title != "Sample Stack!" || p.Summary != "short" ||
		!slices.Equal(p.Keywords, []string{"a", "b"}) {
		t.Errorf("presentation %+v", p)
	}
}

// Characters that a file can only contain as escapes are still escaped after the conversion, in the metadata and in
// CRDs.
func TestEscapedCharactersStayEscaped(t *testing.T) {
	const text, raw = `é\u2028x\u2029\u0085\u007f\u009b\ufeff\u0001\"\\u2028`,
		"é\u2028x\u2029\u0085\u007f\u009b\ufeff\u0001\"\\u2028"
	pkg := mustRead(t, map[string]string{
		"app.yaml": "title: A\noverviewShort: \"" + text + "\"\npermissionScope: Cluster\n", "install.yaml": deployment,
		"resources/resource.yaml": "title: Thing\noverviewShort: \"" + text + "\"\n",
	}, firstgen.Options{})
	_, got := convert(t, pkg, firstgen.ConvertOptions{})
	if s := got.Meta.Presentation().Summary; s != raw {
		t.Errorf("the summary is %q", s)
	}
	found := false
	for _, o := range got.Objects {
		text, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		for _, value := range object.Metadata.Annotations {
			found = found || value == raw
		}
	}
	if !found {
		t.Error("no CRD has the text of resource.yaml")
	}
}

func TestPermissionsForOwnedAndRequiredCRDsAreRequested(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"app.yaml":     "title: A\npermissionScope: Cluster\ndependsOn: [{crd: mytypes.other.example.org/v1}, {crd: '*.third.example.org/v1'}]\n",
		"install.yaml": deployment,
	}, firstgen.Options{})
	_, got := convert(t, pkg, firstgen.ConvertOptions{})
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"a.example.org"}, Resources: []string{"things"}, Verbs: []string{"delete", "deletecollection"}},
		{APIGroups: []string{"other.example.org"}, Resources: []string{"mytypes", "mytypes/status"}, Verbs: []string{"*"}},
		{APIGroups: []string{"third.example.org"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
	if diff := cmp.Diff(want, got.Meta.PermissionRequests); diff != "" {
		t.Error(diff)
	}
}

func TestRequiredCRDsBecomeDependenciesOnKnownPackages(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"app.yaml":     "title: A\npermissionScope: Cluster\ndependsOn: [{crd: as.known.example.org/v1}, {crd: bs.known.example.org/v1}, {crd: cs.unknown.example.org/v1}, {crd: things.a.example.org/v1}, {crd: '*.core.crossplane.io/v1alpha1'}]\n",
		"install.yaml": deployment,
	}, firstgen.Options{})
	c, got := convert(t,
		pkg, firstgen.ConvertOptions{Provides: func(r firstgen.CRDReference) (dependency.Dependency, bool) {
			return dependency.Dependency{Package: "registry.example.org/acme/known", Constraint: ">=v1.0.0"},
				r.Group == "known.example.org"
		}})
	want := []dependency.Dependency{{
		APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Package: "registry.example.org/acme/known",
		Constraint: ">=v1.0.0",
	}}
	if diff := cmp.Diff(want, got.Meta.DependsOn); diff != "" {
		t.Error(diff)
	}
	i := slices.IndexFunc(c.Losses, func(l firstgen.Loss) bool { return l.Reason == firstgen.ReasonDependency })
	if i < 0 || !strings.Contains(c.Losses[i].Message, "cs.unknown.example.org/v1") {
		t.Errorf("losses %v", c.Losses)
	}
	if kinds := []dependency.KindRef{{
		Name: "cs", Group: "unknown.example.org", Version: "v1",
	}}; !slices.Equal(kinds, got.Meta.Kinds) {
		t.Errorf("kinds %v, want %v", got.Meta.Kinds, kinds)
	}
}

func TestDeploymentBecomesDefaultsOfTheRuntime(t *testing.T) {
	pkg := mustRead(t, map[string]string{"app.yaml": "title: A\npermissionScope: Cluster\n", "install.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: elsewhere, labels: {core.crossplane.io/name: sample}}
spec:
  replicas: 2
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {name: pod, labels: {app: controller, core.crossplane.io/name: sample}}
    spec:
      containers:
      - name: manager
        image: acme/manager:v1
        command: [/manager]
        args: [--debug]
        workingDir: /work
        imagePullPolicy: Always
        env:
        - {name: A, value: "1"}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        ports: [{name: http, containerPort: 8081}]
        resources: {limits: {memory: 64Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}}
`}, firstgen.Options{})
	c, got := convert(t, pkg, firstgen.ConvertOptions{})
	if len(c.Losses) > 0 {
		t.Errorf("losses %v", c.Losses)
	}
	if got.Meta.ControllerImage != "acme/manager:v1" {
		t.Errorf("image %q", got.Meta.ControllerImage)
	}
	d := defaultsOf(t, got)
	if *d.Replicas != 2 || !d.ImageInPackageRegistry || d.Labels["core.crossplane.io/name"] != "sample" ||
		len(d.Labels) != 1 || d.WorkingDir != "/work" || d.PullPolicy != "Always" {
		t.Errorf("defaults %+v", d)
	}
	k := d.Container("x")
	if !slices.Equal(k.Command, []string{"/manager"}) || !slices.Equal(k.Args, []string{"--debug"}) || len(k.Env) != 2 ||
		k.Env[1].ValueFrom.FieldRef.FieldPath != "metadata.name" ||
		k.Ports[0].ContainerPort != 8081 || k.Resources.Limits.Memory().String() != "64Mi" ||
		k.ReadinessProbe.HTTPGet.Path != "/ready" {
		t.Errorf("container %+v", k)
	}
}

// A package is not trusted: its Deployment must not get access to its node, to other identities, or to objects of the
// cluster.
//
// hardening: M5
func TestDeploymentCannotRaiseItsPrivileges(t *testing.T) {
	pkg := mustRead(t, map[string]string{"app.yaml": "title: A\npermissionScope: Cluster\n", "install.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, labels: {pkg.crossplane.io/revision: victim}}
spec:
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller, pkg.crossplane.io/provider: victim}}
    spec:
      hostNetwork: true
      hostPID: true
      serviceAccountName: crossplane
      nodeName: master
      volumes: [{name: host, hostPath: {path: /}}, {name: keys, secret: {secretName: root-ca}}]
      initContainers: [{name: first, image: acme/first:v1}]
      containers:
      - name: sidecar
        image: acme/sidecar:v1
      - name: manager
        securityContext: {privileged: true}
        volumeMounts: [{name: host, mountPath: /host}]
        envFrom: [{secretRef: {name: root-ca}}]
        env: [{name: KEY, valueFrom: {secretKeyRef: {name: root-ca, key: tls.key}}}]
        ports: [{name: http, containerPort: 80, hostPort: 80}]
        livenessProbe: {httpGet: {host: 169.254.169.254, path: /, port: 80}}
        lifecycle: {preStop: {exec: {command: [a]}}}
`}, firstgen.Options{})
	c, got := convert(t, pkg, firstgen.ConvertOptions{})
	text := got.Meta.Annotations[runtimedefaults.Annotation]
	for _, secret := range []string{
		"victim", "crossplane", "master", "host", "root-ca", "privileged", "169.254", "preStop", "sidecar", "first",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("the defaults contain %q: %s", secret, text)
		}
	}
	var fields []string
	for _, l := range c.Losses {
		fields = append(fields, string(l.Reason)+" "+l.Field)
	}
	const pod, container = "DeploymentField spec.template.spec.", "DeploymentField spec.template.spec.containers[1]."
	for _, want := range []string{
		pod + "hostNetwork", pod + "hostPID", pod + "serviceAccountName", pod + "nodeName", pod + "volumes",
		container + "securityContext.privileged",
		container + "volumeMounts", container + "envFrom", container + "env.KEY", container + "ports.hostPort",
		container + "livenessProbe", container + "lifecycle.preStop.exec.command",
		"DeploymentField metadata.labels.pkg.crossplane.io/revision",
		"DeploymentField spec.template.metadata.labels.pkg.crossplane.io/provider",
		"AdditionalContainer spec.template.spec.containers[0]", "AdditionalContainer spec.template.spec.initContainers[0]",
	} {
		if !slices.Contains(fields, want) {
			t.Errorf("%q is not reported: %v", want, fields)
		}
	}
}

func TestPackageWithoutAControllerHasNoRuntime(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"crds only": {},
		"templating": {
			"behavior.yaml": "source: {path: chart}\ncrd: {kind: Thing, apiVersion: a.example.org/v1}\nengine: {type: helm3}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, got := convert(t, mustRead(t, files, firstgen.Options{}), firstgen.ConvertOptions{})
			if !defaultsOf(t, got).None || len(got.Meta.PermissionRequests) > 0 {
				t.Errorf("defaults %+v, requests %v", defaultsOf(t, got), got.Meta.PermissionRequests)
			}
			reported := slices.ContainsFunc(
				c.Losses, func(l firstgen.Loss) bool { return l.Reason == firstgen.ReasonTemplating },
			)
			if reported != (name == "templating") {
				t.Errorf("losses %v", c.Losses)
			}
		})
	}
}

func TestNamespacedPermissionsAreReported(t *testing.T) {
	c, _ := convert(
		t, mustRead(t, map[string]string{"install.yaml": deployment}, firstgen.Options{}), firstgen.ConvertOptions{},
	)
	if !slices.ContainsFunc(c.Losses, func(l firstgen.Loss) bool { return l.Reason == firstgen.ReasonScope }) {
		t.Errorf("losses %v", c.Losses)
	}
}

func TestInvalidDeploymentsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"variable": strings.Replace(deployment, "name: helper", "name: helper\n        env: [{name: 'a b', value: c}]", 1),
		"label": strings.Replace(
			deployment, "metadata: {name: controller}", "metadata: {name: controller, labels: {core.crossplane.io/name: 'a b'}}",
			1,
		),
	} {
		if name == "variable" {
			text = strings.Replace(
				deployment, "- name: controller", "- name: controller\n        env: [{name: 'a=b', value: c}]", 1,
			)
		}
		pkg := mustRead(t, map[string]string{"install.yaml": text}, firstgen.Options{})
		if _, err := firstgen.Convert(pkg, firstgen.ConvertOptions{}); !errors.Is(err, firstgen.ErrInvalidInstall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hardening: M7
func TestLargeMetadataIsOmittedAndReported(t *testing.T) {
	pkg := mustRead(
		t, map[string]string{"app.yaml": "title: A\nreadme: " + strings.Repeat("x", 200<<10) + "\n"}, firstgen.Options{},
	)
	c, got := convert(t, pkg, firstgen.ConvertOptions{})
	if got.Meta.Annotations[xpkg.AnnotationReadme] != "" || got.Meta.Annotations[xpkg.AnnotationTitle] != "A" {
		t.Error("the readme was kept, or more than the readme was omitted")
	}
	if !slices.ContainsFunc(c.Losses, func(l firstgen.Loss) bool { return l.Reason == firstgen.ReasonAnnotation }) {
		t.Errorf("losses %v", c.Losses)
	}
}

// The index of the store contains the metadata only, and the runtime starts from it.
func TestRuntimeSurvivesTheIndex(t *testing.T) {
	c, pkg := convert(
		t, mustRead(t, map[string]string{"install.yaml": deployment}, firstgen.Options{}), firstgen.ConvertOptions{},
	)
	x, err := index.New(pkg)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := index.Decode(index.Encode(x))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := decoded.ReadMeta(xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runtimedefaults.Parse(meta.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&c.Runtime, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryAcceptedPackageIsConvertedDeterministically(t *testing.T) {
	race.SkipSequential(t)
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range folders {
		if _, bad := refused[d.Name()]; bad {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			pkg, err := read(t, os.DirFS(filepath.Join(root, d.Name())), firstgen.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c, got := convert(t, pkg, firstgen.ConvertOptions{})
			fsys := os.DirFS(filepath.Join(root, d.Name()))
			l, err := firstgen.Find(fsys)
			if err != nil {
				t.Fatal(err)
			}
			files, err := firstgen.Files(fsys, l, firstgen.Options{})
			if err != nil {
				t.Fatal(err)
			}
			built, err := firstgen.ReadFiles(files, firstgen.Options{})
			if err != nil {
				t.Fatalf("the files of the image: %v", err)
			}
			if of, _ := convert(t, built, firstgen.ConvertOptions{}); !bytes.Equal(of.Stream(), c.Stream()) {
				t.Errorf("the image has another package: %s", cmp.Diff(string(c.Stream()), string(of.Stream())))
			}
			again, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
			if err != nil || !bytes.Equal(c.Stream(), again.Stream()) {
				t.Errorf("another result: %v", err)
			}
			if len(got.Objects) != len(pkg.Resources) {
				t.Errorf("%d objects, want %d", len(got.Objects), len(pkg.Resources))
			}
			for _, l := range c.Losses {
				t.Log(l)
			}
		})
	}
}

func TestPartsThatAreNotReadAreReported(t *testing.T) {
	untyped := strings.Replace(
		betaCRD, "  version: v1alpha1\n",
		"  version: v1alpha1\n  validation: {openAPIV3Schema: {properties: {spec: {properties: {a: {}}}}}}\n", 1,
	)
	pkg := mustRead(t, map[string]string{
		"app.yaml": "title: a\ntilte: b\n", "resources/crd.yaml": "", "resources/b.crd.yaml": untyped,
		"resources/mytype.ui-schema.yaml": "version: 1\n", "resources/ui-schema.yaml": "version: 2\n",
	}, firstgen.Options{})
	c, _ := convert(t, pkg, firstgen.ConvertOptions{})
	var got []string
	for _, l := range c.Losses {
		got = append(got, string(l.Reason)+" "+l.File)
	}
	want := []string{
		"UnknownMetaField app.yaml", "UntypedSchema resources/b.crd.yaml", "UnusedMetadata resources/ui-schema.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("losses (-want +got)\n%s", diff)
	}
	if !strings.Contains(c.Losses[1].Message, "v1alpha1.spec.a") {
		t.Errorf("message %q", c.Losses[1].Message)
	}
}
