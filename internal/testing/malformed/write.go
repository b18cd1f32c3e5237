package malformed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"

	annotationKey = "io.crossplane.xpkg"

	emptyConfig = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`
)

// object is a JSON object that may be malformed.
type object = map[string]any

// archive collects the files of a case.
type archive map[string][]byte

// Write writes the case as an archive: an OCI layout in a tar, unless the case specifies
// other bytes.
func (c Case) Write(w io.Writer) error {
	if c.NotATar != "" {
		_, err := io.WriteString(w, c.NotATar)
		return err
	}
	files := archive{}
	if err := c.root(files); err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	for _, f := range c.Files {
		data := []byte(f.Text)
		if f.Layer != nil {
			var err error
			if data, err = f.Layer.Pack(); err != nil {
				return fmt.Errorf("case %s: %w", c.ID, err)
			}
		}
		files[f.Name] = data
	}
	for _, name := range c.Omit {
		delete(files, name)
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// The suffix "#2" of a name stands for another copy of the file with that name.
		name, data := name, files[name]
		name, _, _ = strings.Cut(name, "#")
		writeMember(&out, name, '0', "", fmt.Sprint(len(data)), data)
	}
	out.Write(make([]byte, 2*block))
	_, err := w.Write(out.Bytes())
	return err
}

// root adds the files of the layout with the image or the index.
func (c Case) root(files archive) error {
	var d object
	var err error
	switch {
	case c.Image != nil:
		d, err = c.Image.add(files)
	case c.Index != nil:
		d, err = c.Index.add(files)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	files["index.json"], err = json.Marshal(object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{d}})
	return err
}

// blob adds a blob, unless missing is set, and returns its descriptor.
func (a archive) blob(mediaType string, data []byte, stored *Change, missing bool) (object, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	d := object{"mediaType": mediaType, "digest": "sha256:" + name, "size": len(data)}
	if missing {
		return d, nil
	}
	kept, err := stored.apply(data)
	a["blobs/sha256/"+name] = kept
	return d, err
}

func (i *Image) add(files archive) (object, error) {
	config, err := files.blob(or(i.ConfigType, ociConfig), []byte(emptyConfig), nil, false)
	if err != nil {
		return nil, err
	}
	manifest := object{"schemaVersion": 2, "mediaType": or(i.MediaType, ociManifest), "config": config}
	layers := []object{}
	for _, l := range i.Layers {
		d, err := l.add(files)
		if err != nil {
			return nil, err
		}
		layers = append(layers, d)
	}
	for range i.Repeat {
		layers = append(layers, layers[0])
	}
	manifest["layers"] = layers
	if i.Pad > 0 || i.Annotations > 0 {
		manifest["annotations"] = i.annotations()
	}
	raw, err := patched(manifest, i.Patch)
	if err != nil {
		return nil, err
	}
	if i.Raw != "" {
		raw = []byte(i.Raw)
	}
	raw = append(raw, i.Suffix...)
	return files.blob(or(i.Declared, or(i.MediaType, ociManifest)), raw, i.Stored, false)
}

func (i *Image) annotations() object {
	all := object{}
	if i.Pad > 0 {
		all["padding"] = strings.Repeat("x", i.Pad)
	}
	for n := range i.Annotations {
		all[fmt.Sprint("a", n)] = ""
	}
	return all
}

func (x *Index) add(files archive) (object, error) {
	manifests := []object{}
	for _, e := range x.Manifests {
		d, err := e.add(files)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, d)
	}
	for n := range x.Repeat {
		d := maps.Clone(manifests[0])
		d["platform"] = object{"os": "linux", "architecture": fmt.Sprint("cpu", n)}
		manifests = append(manifests, d)
	}
	raw, err := patched(object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": manifests}, x.Patch)
	if err != nil {
		return nil, err
	}
	return files.blob(ociIndex, raw, nil, false)
}

func (e Entry) add(files archive) (object, error) {
	var d object
	var err error
	if e.Index != nil {
		d, err = e.Index.add(files)
	} else {
		d, err = e.Image.add(files)
	}
	if err != nil {
		return nil, err
	}
	if os, architecture, found := strings.Cut(e.Platform, "/"); found {
		architecture, variant, _ := strings.Cut(architecture, "/")
		p := object{"os": os, "architecture": architecture}
		if variant != "" {
			p["variant"] = variant
		}
		d["platform"] = p
	}
	if e.Annotations != nil {
		d["annotations"] = e.Annotations
	}
	return d, merge(d, e.Patch)
}

func (l Layer) add(files archive) (object, error) {
	data, err := l.Pack()
	if err != nil {
		return nil, err
	}
	d, err := files.blob(or(l.MediaType, ociLayer), data, l.Stored, l.Missing)
	if err != nil {
		return nil, err
	}
	annotations := object{}
	for k, v := range l.Annotations {
		annotations[k] = v
	}
	if l.Base {
		annotations[annotationKey] = "base"
	}
	if len(annotations) > 0 {
		d["annotations"] = annotations
	}
	return d, merge(d, l.Patch)
}

// Pack returns the bytes of the layer before they are modified for storage.
func (l Layer) Pack() ([]byte, error) {
	data := []byte(l.Text)
	var err error
	switch {
	case l.Hex != "":
		data, err = unhex(l.Hex)
	case l.Text == "":
		data, err = writeTar(l.Tar)
	}
	if err != nil {
		return nil, err
	}
	if data, err = l.Plain.apply(data); err != nil {
		return nil, err
	}
	compress := l.Compress
	if compress == nil && l.Hex == "" {
		compress = []string{"gzip"}
	}
	for _, c := range compress {
		if data, err = pack(c, data); err != nil {
			return nil, err
		}
	}
	return l.Packed.apply(data)
}

func pack(compression string, data []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch compression {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			return nil, err
		}
		w = z
	default:
		return nil, fmt.Errorf("no compression %q", compression)
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// patched returns the JSON of an object with a merge patch applied.
func patched(o object, patch json.RawMessage) ([]byte, error) {
	if err := merge(o, patch); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// merge applies the first level of a merge patch. Numbers keep their digits.
func merge(o object, patch json.RawMessage) error {
	if len(patch) == 0 {
		return nil
	}
	var p map[string]json.RawMessage
	if err := json.Unmarshal(patch, &p); err != nil {
		return err
	}
	for k, v := range p {
		if string(v) == "null" {
			delete(o, k)
			continue
		}
		o[k] = v
	}
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
