package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrImageConfigFile is the code for a file of ImageConfigs that cannot be read.
var ErrImageConfigFile = errcode.Code{
	Name: "ImageConfigFile", Class: errcode.Usage,
	Cause: "A file of ImageConfigs that a flag, a variable or the configuration file names cannot be read.",
	Fix:   "Correct the path. `xpkg config view` shows whether --image-config has its value from XPKG_IMAGE_CONFIG or from the configuration file.",
}

// ReadImageConfigs reads the ImageConfigs in files, also those in lists, as `kubectl get imageconfigs -o yaml` writes
// them, and the Secrets that these name. It ignores other objects.
func ReadImageConfigs(env *terminal.Env, files []string) (origin.Files, error) {
	var out origin.Files
	for _, file := range files {
		raw, err := env.ReadInput(file)
		if err != nil {
			return origin.Files{}, ErrImageConfigFile.New(err, "cannot read the ImageConfigs")
		}
		if err := parseImageConfigs(&out, file, raw); err != nil {
			return origin.Files{}, err
		}
	}
	return out, nil
}

// ParseImageConfigs is like ReadImageConfigs for the content of a file.
func ParseImageConfigs(file string, raw []byte) (out origin.Files, err error) {
	err = parseImageConfigs(&out, file, raw)
	return out, err
}

// parseImageConfigs adds the ImageConfigs and the Secrets in a file.
func parseImageConfigs(out *origin.Files, file string, raw []byte) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = appendImageConfigs(out, document)
		}
		if err != nil {
			return imageconfig.ErrImageConfigInvalid.New(err, "cannot read the ImageConfigs of %s", file)
		}
	}
}

// readImageConfig reads an ImageConfig, and refuses what an API server would: a requirement with a misspelt name would
// require nothing.
func readImageConfig(object json.RawMessage) (v1beta1.ImageConfig, error) {
	var c v1beta1.ImageConfig
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	if c.APIVersion != v1beta1.GroupVersion.String() {
		return c, fmt.Errorf("the ImageConfig %s has the apiVersion %q, want %s", c.Name, c.APIVersion, v1beta1.GroupVersion)
	}
	for _, m := range c.Spec.MatchImages {
		if m.Type != "" && m.Type != v1beta1.Prefix {
			return c, fmt.Errorf("the ImageConfig %s has a match of the type %q, want %s", c.Name, m.Type, v1beta1.Prefix)
		}
	}
	if v := c.Spec.Verification; v != nil && v.Provider != v1beta1.Cosign {
		return c, fmt.Errorf("the ImageConfig %s has the provider %q, want %s", c.Name, v.Provider, v1beta1.Cosign)
	}
	return c, nil
}

// appendImageConfigs appends an ImageConfig or a Secret, or those of a list, in JSON.
func appendImageConfigs(out *origin.Files, object json.RawMessage) error {
	var head struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if len(object) == 0 { // an empty document
		return nil
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "ImageConfig":
		c, err := readImageConfig(object)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(out.Configs, func(o v1beta1.ImageConfig) bool { return o.Name == c.Name }) {
			return fmt.Errorf("there are two ImageConfigs with the name %q", c.Name)
		}
		out.Configs = append(out.Configs, c)
		return nil
	case "Secret":
		var s corev1.Secret
		err := json.Unmarshal(object, &s)
		out.Secrets = append(out.Secrets, s)
		return err
	case "List", "ImageConfigList", "SecretList":
		for _, item := range head.Items {
			if err := appendImageConfigs(out, item); err != nil {
				return err
			}
		}
	}
	return nil
}
