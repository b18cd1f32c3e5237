package firstgen_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestFindingsAboutTheConversionAreAtTheLinesOfThePackage(t *testing.T) {
	beta := strings.Replace(
		betaCRD, "  version: v1alpha1\n",
		"  version: v1alpha1\n  validation:\n    openAPIV3Schema:\n      properties:\n        spec:\n          type: object\n          properties:\n            wrong: {type: string}\n",
		1,
	)
	pkg := mustRead(t, map[string]string{
		"resources/crd.yaml":          "",
		"resources/v1alpha1.crd.yaml": "# comment\n---\n" + beta,
		"resources/v1beta1.crd.yaml":  strings.Replace(betaCRD, "v1alpha1", "v1beta1", 1),
	}, firstgen.Options{})
	c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	placer := firstgen.NewPlacer(pkg, c)
	line := 0
	got := map[string]string{}
	document := 1
	for text := range strings.Lines(string(c.Stream())) {
		line++
		if text == "---\n" {
			document++
		}
		f, ok := placer.Place(xpkg.Finding{Document: document, Line: line})
		if name, _, _ := strings.Cut(strings.TrimSpace(text), ":"); ok {
			got[name] = f.Place()
		}
	}
	for name, want := range map[string]string{
		"wrong": "resources/v1alpha1.crd.yaml:18", "scope": "resources/v1beta1.crd.yaml:8",
	} {
		if want != got[name] {
			t.Errorf("%s is at %q, want %q", name, got[name], want)
		}
	}
	if f, ok := placer.Place(xpkg.Finding{Document: 1, Line: 1, Severity: xpkg.Error}); !ok || f.Place() != "app.yaml" {
		t.Errorf("an error of the metadata is at %q", f.Place())
	}
	if _, ok := placer.Place(xpkg.Finding{}); ok {
		t.Error("a finding without a document has a place")
	}
}

func TestSettingsThatRaisePrivilegesAreReportedWithTheirLines(t *testing.T) {
	text := `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  template:
    spec:
      serviceAccountName: admin
      hostNetwork: true
      volumes:
      - {name: host, hostPath: {path: /}}
      initContainers:
      - {name: init, image: busybox}
      containers:
      - name: controller
        args: [a]
        securityContext:
          privileged: true
        volumeMounts: [{name: host, mountPath: /host}]
        env:
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: a, key: b}}}
        ports:
        - containerPort: 80
          hostPort: 80
`
	pkg := mustRead(t, map[string]string{"install.yaml": text}, firstgen.Options{})
	c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range firstgen.NewPlacer(pkg, c).IgnoredSettings() {
		got[f.Place()] = true
		if f.Severity != xpkg.Warning || f.Code.Name != firstgen.ErrIgnoredSetting.Name {
			t.Errorf("finding %s", f)
		}
	}
	want := map[string]bool{}
	for _, line := range []string{"8", "9", "12", "17", "18", "19", "21"} {
		want["install.yaml:"+line] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if pkg := mustRead(t, nil, firstgen.Options{}); len(firstgen.NewPlacer(pkg, c).IgnoredSettings()) > 0 {
		t.Error("a package without install.yaml has ignored settings")
	}
}
