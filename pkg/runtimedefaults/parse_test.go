package runtimedefaults_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

func parse(text string) (*runtimedefaults.Defaults, error) {
	return runtimedefaults.Parse(map[string]string{runtimedefaults.Annotation: text})
}

// hardening: M6
func TestDefaultsThatAPackageMustNotSetAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":           "a: b",
		"security context":   `{"securityContext":{"privileged":true}}`,
		"service account":    `{"serviceAccountName":"crossplane"}`,
		"volume":             `{"volumes":[{"name":"a"}]}`,
		"image":              `{"image":"a/b"}`,
		"foreign label":      `{"labels":{"pkg.crossplane.io/revision":"victim"}}`,
		"label value":        `{"labels":{"core.crossplane.io/name":"a b"}}`,
		"secret variable":    `{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"a","key":"b"}}}]}`,
		"variable name":      `{"env":[{"name":"A=B"}]}`,
		"variable twice set": `{"env":[{"name":"A","value":"b","fieldPath":"metadata.name"}]}`,
		"host port":          `{"ports":[{"port":80,"hostPort":80}]}`,
		"port number":        `{"ports":[{"port":70000}]}`,
		"port name":          `{"ports":[{"name":"A B","port":80}]}`,
		"replicas":           `{"replicas":1000000}`,
		"negative replicas":  `{"replicas":-1}`,
		"pull policy":        `{"imagePullPolicy":"Sometimes"}`,
		"probe of a host":    `{"livenessProbe":{"httpGet":{"host":"169.254.169.254","port":80}}}`,
		"socket of a host":   `{"startupProbe":{"tcpSocket":{"host":"10.0.0.1","port":80}}}`,
		"too large":          `{"workingDir":"` + strings.Repeat("a", 70<<10) + `"}`,
		"too many":           `{"args":["a"` + strings.Repeat(`,"a"`, 300) + `]}`,
	} {
		if d, err := parse(text); !errors.Is(err, runtimedefaults.ErrInvalid) || d != nil {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

func TestPackageWithoutTheAnnotationHasNoDefaults(t *testing.T) {
	if d, err := runtimedefaults.Parse(nil); d != nil || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzParse checks that valid defaults have one encoding, which is parsed to the same defaults.
func FuzzParse(f *testing.F) {
	f.Add(`{"replicas":1,"args":["a"],"env":[{"name":"A","fieldPath":"metadata.name"}],"limits":{"memory":"1Gi"}}`)
	f.Add(`{"none":true}`)
	f.Add(`{"args":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parse(text)
		if err != nil {
			return
		}
		d.Container("x")
		encoded, err := d.Encode()
		if err != nil {
			return // Only the size can differ.
		}
		again, err := parse(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.Container("x"), again.Container("x"), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
