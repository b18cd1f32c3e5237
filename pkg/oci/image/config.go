package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Config is the configuration of an image (OCI image specification, "Image
// Configuration"). It keeps unknown fields unchanged.
type Config struct {
	fields map[string]json.RawMessage
}

// newConfig returns the configuration of an image without layers.
func newConfig(p oci.Platform) (Config, error) {
	c := Config{fields: map[string]json.RawMessage{}}
	for name, value := range map[string]string{"architecture": p.Architecture, "os": p.OS, "variant": p.Variant} {
		if value == "" {
			continue
		}
		if err := c.set(name, value); err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// ParseConfig reads a verified configuration.
func ParseConfig(data []byte) (Config, error) {
	c := Config{}
	if err := json.Unmarshal(data, &c.fields); err != nil || c.fields == nil {
		return Config{}, oci.ErrInvalidManifest.New(err, "cannot read the configuration of the image")
	}
	return c, nil
}

// Get decodes a field of the configuration.
func (c Config) Get(name string, into any) error {
	raw, ok := c.fields[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return oci.ErrInvalidManifest.New(err, "cannot read %q of the configuration of the image", name)
	}
	return nil
}

func (c Config) set(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %q of the configuration: %w", name, err)
	}
	c.fields[name] = raw
	return nil
}

// Platform returns the platform of the image.
func (c Config) Platform() (oci.Platform, error) {
	var p oci.Platform
	for name, into := range map[string]*string{
		"architecture": &p.Architecture, "os": &p.OS, "os.version": &p.OSVersion, "variant": &p.Variant,
	} {
		if err := c.Get(name, into); err != nil {
			return oci.Platform{}, err
		}
	}
	return p, nil
}

// rootFS lists the digests of the layers before compression, bottom layer first.
type rootFS struct {
	Type    string       `json:"type"`
	DiffIDs []oci.Digest `json:"diff_ids"`
}

// history is an entry of the configuration's history; it describes the content of a
// layer.
type history struct {
	Created   *time.Time `json:"created,omitempty"`
	CreatedBy string     `json:"created_by,omitempty"`
	Comment   string     `json:"comment,omitempty"`
}

// Labels returns the labels of the image.
func (c Config) Labels() (map[string]string, error) {
	var inner struct {
		Labels map[string]string `json:"Labels"`
	}
	err := c.Get("config", &inner)
	return inner.Labels, err
}

// addLabels adds labels and keeps all other fields of the runtime configuration.
func (c Config) addLabels(add map[string]string) error {
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	for k, v := range add {
		labels[k] = v
	}
	return c.setLabels(labels)
}

// setLabels replaces the labels and keeps all other fields of the runtime configuration.
func (c Config) setLabels(labels map[string]string) error {
	inner := map[string]json.RawMessage{}
	if err := c.Get("config", &inner); err != nil {
		return err
	}
	if inner == nil {
		inner = map[string]json.RawMessage{}
	}
	raw, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("cannot write the labels of the configuration: %w", err)
	}
	inner["Labels"] = raw
	return c.set("config", inner)
}

// addLayers appends layers to the configuration.
func (c Config) addLayers(layers []builtLayer, created time.Time) error {
	root := rootFS{Type: "layers", DiffIDs: []oci.Digest{}}
	if err := c.Get("rootfs", &root); err != nil {
		return err
	}
	past := []json.RawMessage{}
	if err := c.Get("history", &past); err != nil {
		return err
	}
	for _, layer := range layers {
		root.DiffIDs = append(root.DiffIDs, layer.diffID)
		entry := history{CreatedBy: "xpkg build", Comment: oci.AnnotationKey + ": " +
			layer.desc.Annotations[oci.AnnotationKey]}
		if !created.IsZero() {
			utc := created.UTC()
			entry.Created = &utc
		}
		raw, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("cannot write the history of the configuration: %w", err)
		}
		past = append(past, raw)
	}
	if err := c.set("rootfs", root); err != nil {
		return err
	}
	return c.set("history", past)
}

// bytes returns the encoded configuration. The encoding is deterministic: the fields are
// sorted by name.
func (c Config) bytes() ([]byte, error) {
	data, err := json.Marshal(c.fields)
	if err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the image: %w", err)
	}
	return data, nil
}
