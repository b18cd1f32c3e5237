package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// imageConfig is the configuration of an image (OCI image specification, "Image
// Configuration"). What it does not know is kept as it was.
type imageConfig struct {
	fields map[string]json.RawMessage
}

// newConfig is the configuration of an image that starts from nothing.
func newConfig(p Platform) (imageConfig, error) {
	c := imageConfig{fields: map[string]json.RawMessage{}}
	for name, value := range map[string]string{"architecture": p.Architecture, "os": p.OS, "variant": p.Variant} {
		if value == "" {
			continue
		}
		if err := c.set(name, value); err != nil {
			return imageConfig{}, err
		}
	}
	return c, nil
}

// parseConfig reads a verified configuration.
func parseConfig(data []byte) (imageConfig, error) {
	c := imageConfig{}
	if err := json.Unmarshal(data, &c.fields); err != nil || c.fields == nil {
		return imageConfig{}, ErrInvalidManifest.New(err, "cannot read the configuration of the image")
	}
	return c, nil
}

func (c imageConfig) get(name string, into any) error {
	raw, ok := c.fields[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return ErrInvalidManifest.New(err, "cannot read %q of the configuration of the image", name)
	}
	return nil
}

func (c imageConfig) set(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %q of the configuration: %w", name, err)
	}
	c.fields[name] = raw
	return nil
}

func (c imageConfig) platform() (Platform, error) {
	var p Platform
	for name, into := range map[string]*string{
		"architecture": &p.Architecture, "os": &p.OS, "os.version": &p.OSVersion, "variant": &p.Variant,
	} {
		if err := c.get(name, into); err != nil {
			return Platform{}, err
		}
	}
	return p, nil
}

// rootFS lists the digests of the layers before compression, the lowest first.
type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []Digest `json:"diff_ids"`
}

// history is an entry of the configuration's history; it says here which layer
// holds what.
type history struct {
	Created   *time.Time `json:"created,omitempty"`
	CreatedBy string     `json:"created_by,omitempty"`
	Comment   string     `json:"comment,omitempty"`
}

func (c imageConfig) labels() (map[string]string, error) {
	var inner struct {
		Labels map[string]string `json:"Labels"`
	}
	err := c.get("config", &inner)
	return inner.Labels, err
}

// addLabels adds labels and keeps everything else of the runtime configuration.
func (c imageConfig) addLabels(add map[string]string) error {
	labels, err := c.labels()
	if err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	for k, v := range add {
		labels[k] = v
	}
	inner := map[string]json.RawMessage{}
	if err := c.get("config", &inner); err != nil {
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

// addLayers records layers that were put on top.
func (c imageConfig) addLayers(layers []builtLayer, created time.Time) error {
	root := rootFS{Type: "layers", DiffIDs: []Digest{}}
	if err := c.get("rootfs", &root); err != nil {
		return err
	}
	past := []json.RawMessage{}
	if err := c.get("history", &past); err != nil {
		return err
	}
	for _, layer := range layers {
		root.DiffIDs = append(root.DiffIDs, layer.diffID)
		entry := history{CreatedBy: "xpkg build", Comment: AnnotationKey + ": " + layer.desc.Annotations[AnnotationKey]}
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

// bytes are the same for the same content: the fields are sorted by name.
func (c imageConfig) bytes() ([]byte, error) {
	data, err := json.Marshal(c.fields)
	if err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the image: %w", err)
	}
	return data, nil
}
