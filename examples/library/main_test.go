package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	registryserver "github.com/google/go-containerregistry/pkg/registry"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

const webhook = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: things}
webhooks: [{name: things.example.org, sideEffects: None, admissionReviewVersions: [v1]}]
`

// publish pushes packages to a registry on the loopback interface, and returns its host.
func publish(t *testing.T, packages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(registryserver.New(registryserver.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	for name, stream := range packages {
		img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(strings.ReplaceAll(stream, "HOST", host))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Push(t.Context(), oci.MustParseReference(host+"/"+name), img); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func TestTheProgramPrintsObjectsDependenciesAndPlan(t *testing.T) {
	meta := func(kind, name, dependsOn string) string {
		return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: " + name +
			"}\nspec: {dependsOn: [" + dependsOn + "]}\n"
	}
	host := publish(t, map[string]string{
		"acme/things:v1.0.0": meta("Provider", "things", `{function: HOST/acme/auto, version: ">=v1.0.0, <v2"}`) + crd +
			webhook,
		"acme/auto:v1.0.0":    meta("Function", "auto", ""),
		"acme/auto:v1.2.0":    meta("Function", "auto", `{configuration: HOST/acme/base, version: "*"}`),
		"acme/auto:v2.0.0":    meta("Function", "auto", ""),
		"acme/base:v0.1.0":    meta("Configuration", "base", ""),
		"acme/unrelated:v1.0": meta("Function", "unrelated", ""),
	})
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	const owned = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
  ownerReferences: [{apiVersion: pkg.crossplane.io/v1, kind: ProviderRevision, name: other-1, uid: u, controller: true}]
`
	if err := os.WriteFile(objects, []byte(owned), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = `Provider things
  1 CustomResourceDefinition
  1 ValidatingWebhookConfiguration
Dependencies
  acme/auto v1.2.0 (Function)
  acme/base v0.1.0 (Configuration)
Plan
`
	for objects, want := range map[string]string{
		"": head + `  create CustomResourceDefinition things.example.org
  create ValidatingWebhookConfiguration crossplane-provider-things
`,
		objects: head + `  refused: CustomResourceDefinition things.example.org: CustomResourceDefinition things.example.org belongs to ProviderRevision/other-1
`,
	} {
		var out bytes.Buffer
		if err := run(t.Context(), &out, host+"/acme/things:v1.0.0", objects); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestTheProgramImportsThePublicLibraryAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if rest, ok := strings.CutPrefix(path, "github.com/xpkg-dev/xpkg/"); ok && !strings.HasPrefix(rest, "pkg/") {
			t.Errorf("it imports %s", path)
		}
	}
}
