package runtimedefaults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrInvalid is the code for defaults that cannot be used.
var ErrInvalid = errcode.Code{
	Name: "InvalidRuntimeDefaults", Class: errcode.Invalid, Final: true,
	Cause: "The annotation meta.xpkg.dev/default-runtime of a package is malformed, or sets something that a package must not set.",
	Fix:   "Correct the annotation in the metadata of the package, and publish the package again.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrInvalid} }

// MaxReplicas is the maximum of Defaults.Replicas.
const MaxReplicas = 16

const (
	maxBytes   = 64 << 10
	maxEntries = 256
)

// Parse returns the defaults in the annotations of a package's metadata, or nil if it has none. It rejects unknown
// fields: a default that a reader ignores would start the runtime in another way than its author intended.
func Parse(annotations map[string]string) (*Defaults, error) {
	text, ok := annotations[Annotation]
	if !ok {
		return nil, nil
	}
	if len(text) > maxBytes {
		return nil,
			ErrInvalid.New(nil, "the annotation %s has %d bytes, at most %d are allowed", Annotation, len(text), maxBytes)
	}
	d := &Defaults{}
	unknown, err := kjson.UnmarshalStrict([]byte(text), d)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err == nil {
		err = d.validate()
	}
	if err != nil {
		return nil, ErrInvalid.New(err, "cannot use the annotation %s", Annotation)
	}
	return d, nil
}

// Encode returns the value of the annotation. It fails with InvalidRuntimeDefaults for defaults that Parse rejects.
func (d *Defaults) Encode() (string, error) {
	if err := d.validate(); err != nil {
		return "", ErrInvalid.New(err, "the defaults of the runtime are invalid")
	}
	text, err := json.Marshal(d)
	if err == nil && len(text) > maxBytes {
		err = ErrInvalid.New(nil, "the defaults of the runtime have %d bytes, at most %d are allowed", len(text), maxBytes)
	}
	return string(text), err
}

func (d *Defaults) validate() error {
	switch {
	case d.Replicas != nil && (*d.Replicas < 0 || *d.Replicas > MaxReplicas):
		return fmt.Errorf("replicas is %d, want 0 to %d", *d.Replicas, MaxReplicas)
	case len(d.Env) > maxEntries || len(d.Args) > maxEntries || len(d.Command) > maxEntries || len(d.Ports) > maxEntries ||
		len(d.Labels) > maxEntries:
		return fmt.Errorf("a list has more than %d entries", maxEntries)
	case !slices.Contains(
		[]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}, d.PullPolicy,
	):
		return fmt.Errorf("imagePullPolicy is %.40q", d.PullPolicy)
	}
	for key, value := range d.Labels {
		if err := checkLabel(key, value); err != nil {
			return err
		}
	}
	for _, v := range d.Env {
		if err := v.validate(); err != nil {
			return err
		}
	}
	for _, p := range d.Ports {
		if problems := validation.IsValidPortNum(int(p.Port)); len(problems) > 0 {
			return fmt.Errorf("port %d: %s", p.Port, problems[0])
		}
		if problems := validation.IsValidPortName(p.Name); p.Name != "" && len(problems) > 0 {
			return fmt.Errorf("the port name %.40q: %s", p.Name, problems[0])
		}
	}
	for _, p := range []*corev1.Probe{d.LivenessProbe, d.ReadinessProbe, d.StartupProbe} {
		if err := checkProbe(p); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(key, value string) error {
	if !strings.HasPrefix(key, LabelPrefix) {
		return fmt.Errorf("the label %.100q does not start with %s", key, LabelPrefix)
	}
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
		return fmt.Errorf("the label %.100q: %s", key, problems[0])
	}
	return nil
}

func (v Variable) validate() error {
	if problems := validation.IsEnvVarName(v.Name); len(problems) > 0 {
		return fmt.Errorf("the variable %.100q: %s", v.Name, problems[0])
	}
	if v.Value != "" && v.FieldPath != "" {
		return fmt.Errorf("the variable %s has both a value and a fieldPath", v.Name)
	}
	return nil
}

// checkProbe rejects a probe of another host: the node sends probes, and can reach hosts that the runtime cannot.
func checkProbe(p *corev1.Probe) error {
	switch {
	case p == nil:
		return nil
	case p.HTTPGet != nil && p.HTTPGet.Host != "", p.TCPSocket != nil && p.TCPSocket.Host != "":
		return fmt.Errorf("a probe names a host")
	}
	return nil
}
