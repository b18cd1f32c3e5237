package index

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestCallsRuntime(t *testing.T) {
	const crd, mrd = "apiextensions.k8s.io/v1, kind: CustomResourceDefinition",
		"apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceDefinition"
	const converted = "spec: {conversion: {strategy: Webhook, webhook: {}}}"
	for name, c := range map[string]struct {
		typed, spec string
		want        bool
	}{
		"converted by a webhook": {crd, converted, true},
		"converted by a webhook, v1beta1": {
			"apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition",
			"spec: {conversion: {conversionReviewVersions: [v1], strategy: Webhook}}", true,
		},
		"managed resource": {mrd, converted, true},
		"not converted":    {crd, "spec: {conversion: {strategy: None}}", false},
		"nothing said":     {crd, "spec: {group: x}", false},
		"no spec":          {crd, "status: {conversion: {strategy: Webhook}}", false},
		"said elsewhere":   {crd, "spec: {group: x, names: {conversion: {strategy: Webhook}}, strategy: Webhook}", false},
		"no object":        {crd, "spec: {conversion: [strategy, Webhook]}", false},
		"no text":          {crd, "spec: {conversion: {strategy: {Webhook: true}}}", false},
		"webhooks":         {"admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration", "webhooks: []", true},
	} {
		t.Run(name, func(t *testing.T) {
			stream := meta("Provider") + "---\n{apiVersion: " + c.typed + ", metadata: {name: o}, " + c.spec + "}\n"
			pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := pkg.Objects[0].CallsRuntime(); got != c.want {
				t.Errorf("from YAML: %t", got)
			}
			index, err := New(pkg)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := Blob(pkg)
			if err != nil {
				t.Fatal(err)
			}
			for version := 1; version <= Version; version++ {
				index.Version = version
				decoded, err := Decode(Encode(index))
				if err != nil {
					t.Fatal(err)
				}
				if err := decoded.Matches(pkg); err != nil {
					t.Error(err)
				}
				reader := &counting{Reader: bytes.NewReader(bytes.Join(texts, nil))}
				warm, err := decoded.Package(reader, xpkg.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if got := warm.Objects[0].CallsRuntime(); got != c.want {
					t.Errorf("from an index of version %d: %t", version, got)
				}
				if version >= withCalls && reader.reads > 0 {
					t.Errorf("%d reads of the object although the index knows", reader.reads)
				}
			}
		})
	}
}

// The verification of an index detects false information about webhooks.
func TestIndexWithWrongWebhookInformationIsRefused(t *testing.T) {
	pkg, index, _ := indexed(t)
	index.Objects[0].CallsRuntime = true
	if err := index.Matches(pkg); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	text := Encode(index)
	text[len(text)-1] = 2
	if _, err := Decode(text); !errors.Is(err, ErrDamaged) {
		t.Errorf("two ways to write an index: %v", err)
	}
}

// An index tells which kinds are managed resources, and one that tells it wrong is refused.
func TestIndexHasManagedResources(t *testing.T) {
	for managed, categories := range map[bool]string{true: "[crossplane, managed]", false: "[crossplane, provider]"} {
		pkg, err := xpkg.Read([]byte(meta("Provider")+`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.b.org}
spec: {group: b.org, scope: Cluster, names: {kind: A, plural: as, categories: `+categories+`}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`), xpkg.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		index, err := New(pkg)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := Decode(Encode(index))
		if err != nil {
			t.Fatal(err)
		}
		warm, err := decoded.Package(nil, xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := warm.Objects[0].Definitions(); err != nil || got[0].Managed != managed {
			t.Errorf("%+v (%v), want managed %t", got, err, managed)
		}
		decoded.Objects[0].Defines[0].Managed = !managed
		if err := decoded.Matches(pkg); !errors.Is(err, ErrDamaged) {
			t.Errorf("a wrong category: %v", err)
		}
		if decoded.Version = withDefinitions; decoded.Matches(pkg) != nil {
			t.Error("an index of the version before does not match")
		}
	}
}
