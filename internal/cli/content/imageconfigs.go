package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

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
		found, err := ParseImageConfigs(file, raw)
		if err != nil {
			return origin.Files{}, err
		}
		out.Configs, out.Secrets = append(out.Configs, found.Configs...), append(out.Secrets, found.Secrets...)
	}
	return out, nil
}

// ParseImageConfigs is like ReadImageConfigs for the content of a file.
func ParseImageConfigs(file string, raw []byte) (origin.Files, error) {
	var out origin.Files
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			err = appendImageConfigs(&out, document)
		}
		if err != nil {
			return origin.Files{}, imageconfig.ErrImageConfigInvalid.New(err, "cannot read the ImageConfigs of %s", file)
		}
	}
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
		var c v1beta1.ImageConfig
		err := json.Unmarshal(object, &c)
		out.Configs = append(out.Configs, c)
		return err
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
