package revision_test

import (
	"errors"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A package whose webhook no runtime would serve is refused. Its webhook configurations can be left out, and its
// conversions cannot.
func TestWebhooksNeedARuntime(t *testing.T) {
	const (
		none       = `{"none":true}`
		conversion = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec: {group: example.org, names: {kind: Boat, plural: boats}, scope: Cluster, conversion: {strategy: STRATEGY}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`
		configuration = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: boats}
webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {path: /a}}}]
`
	)
	webhook, strategyNone := strings.Replace(conversion, "STRATEGY", "Webhook", 1),
		strings.Replace(conversion, "STRATEGY", "None", 1)
	for name, tt := range map[string]struct {
		runtime, object string
		shared          bool
		want            error
	}{
		"a runtime and a conversion":         {object: webhook},
		"no runtime and a conversion":        {runtime: none, object: webhook, want: revision.ErrConversionWithoutRuntime},
		"no runtime and no conversion":       {runtime: none, object: strategyNone},
		"no runtime and a configuration":     {runtime: none, object: configuration},
		"a shared Provider and a conversion": {shared: true, object: webhook, want: revision.ErrSharedWebhook},
		"a shared Provider, no runtime, both": {
			shared: true, runtime: none, object: webhook, want: revision.ErrSharedWebhook,
		},
		"a shared Provider, a configuration": {shared: true, object: configuration, want: revision.ErrSharedWebhook},
		"a shared Provider without webhooks": {shared: true, object: strategyNone},
	} {
		t.Run(name, func(t *testing.T) {
			meta := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: x\n"
			if tt.runtime != "" {
				meta += "  annotations: {meta.xpkg.dev/default-runtime: '" + tt.runtime + "'}\n"
			}
			pkg, err := xpkg.Read([]byte(meta+"---"+tt.object), xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := v1.NewPackage(v1.ProviderKind)
			p.SetName("x")
			if tt.shared {
				p.SetAnnotations(map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls})
			}
			if err := revision.Installable(p, pkg); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}
