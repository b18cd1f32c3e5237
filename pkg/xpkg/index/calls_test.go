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
