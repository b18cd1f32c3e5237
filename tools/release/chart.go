package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	specsgo "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

// The media types of charts in registries (https://helm.sh/docs/topics/registries).
const (
	chartConfigType  = "application/vnd.cncf.helm.config.v1+json"
	chartContentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chart writes the chart as an archive, and as an OCI layout in the folder chart.
func (o *options) chart() error {
	root := filepath.Join(o.root, "charts", "xpkg")
	var files []file
	var metadata map[string]any
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			if content, metadata, err = o.released(content); err != nil {
				return err
			}
		}
		files = append(files, file{name: "xpkg/" + filepath.ToSlash(name), content: content})
		return nil
	})
	if err != nil {
		return err
	}
	content, err := tarball(files, o.time)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(o.version, "v")
	if _, err := o.write(fmt.Sprintf("xpkg-chart-%s.tgz", version), content); err != nil {
		return err
	}
	return o.layout(content, metadata, version)
}

// released returns the metadata of the chart with the version of the release.
func (o *options) released(content []byte) ([]byte, map[string]any, error) {
	var metadata map[string]any
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return nil, nil, err
	}
	metadata["version"], metadata["appVersion"] = strings.TrimPrefix(o.version, "v"), o.version
	out, err := yaml.Marshal(metadata)
	return out, metadata, err
}

// layout writes an OCI layout with the chart, whose tag is the version. Every OCI client can copy it to a registry.
func (o *options) layout(content []byte, metadata map[string]any, version string) error {
	dir := filepath.Join(o.out, "chart")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	config, err := addJSON(dir, chartConfigType, metadata)
	if err != nil {
		return err
	}
	layer, err := addBlob(dir, chartContentType, content)
	if err != nil {
		return err
	}
	manifest, err := addJSON(dir, specs.MediaTypeImageManifest, specs.Manifest{
		Versioned: schema, MediaType: specs.MediaTypeImageManifest, Config: config, Layers: []specs.Descriptor{layer},
		Annotations: map[string]string{
			specs.AnnotationTitle: "xpkg", specs.AnnotationVersion: version,
			specs.AnnotationCreated: o.time.Format(time.RFC3339),
		},
	})
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{specs.AnnotationRefName: version}
	for name, value := range map[string]any{
		specs.ImageIndexFile: specs.Index{
			Versioned: schema, MediaType: specs.MediaTypeImageIndex, Manifests: []specs.Descriptor{manifest},
		},
		specs.ImageLayoutFile: specs.ImageLayout{Version: specs.ImageLayoutVersion},
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// schema is the version of the schema of manifests.
var schema = specsgo.Versioned{SchemaVersion: 2}

// addJSON adds a value to an OCI layout.
func addJSON(dir, mediaType string, value any) (specs.Descriptor, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return specs.Descriptor{}, err
	}
	return addBlob(dir, mediaType, raw)
}

// addBlob adds content to an OCI layout.
func addBlob(dir, mediaType string, content []byte) (specs.Descriptor, error) {
	d := digest.FromBytes(content)
	path := filepath.Join(dir, "blobs", d.Algorithm().String(), d.Encoded())
	return specs.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}, os.WriteFile(path, content, 0o644)
}
