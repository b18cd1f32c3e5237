// Package malformed builds the published corpus of malformed package images from the table in
// testdata/malformed/image. The table describes each case in a small language, and this package
// writes the case as an archive, for tests of any implementation. See the README beside the table.
package malformed

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Case is one input and the expected result of reading it.
type Case struct {
	// ID is the name of the case and of its file.
	ID string `json:"id"`
	// Hardening is the item in the catalog of bad inputs to which the case belongs.
	Hardening string `json:"hardening"`
	// What is one sentence that describes the defect, or the reason why the input is
	// valid.
	What string `json:"what"`
	// Expect is the code of the failure, or "ok".
	Expect string `json:"expect"`
	// Content is the content of package.yaml if Expect is "ok". Empty means Default.
	Content string `json:"content,omitempty"`

	// Image or Index is the root, if the case has one.
	Image *Image `json:"image,omitempty"`
	Index *Index `json:"index,omitempty"`
	// Files replace files of the archive or are added to it. Without a root, they are the whole
	// archive.
	Files []File `json:"files,omitempty"`
	// Omit lists files to leave out.
	Omit []string `json:"omit,omitempty"`
	// NotATar is text that replaces the archive.
	NotATar string `json:"notATar,omitempty"`
}

// Default is the content of package.yaml in cases without their own.
const Default = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: good\n"

// File is a file of the archive itself.
type File struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
	// Layer fills the file with a layer.
	Layer *Layer `json:"layer,omitempty"`
}

// Image is an image manifest with its layers.
type Image struct {
	Layers []Layer `json:"layers"`
	// Repeat adds copies of the first layer.
	Repeat int `json:"repeat,omitempty"`
	// MediaType is the media type of the manifest and its descriptor.
	MediaType string `json:"mediaType,omitempty"`
	// Declared is the media type of the descriptor only.
	Declared string `json:"declared,omitempty"`
	// ConfigType is the media type of the configuration.
	ConfigType string `json:"configType,omitempty"`
	// Pad adds an annotation with this number of bytes, and Annotations this number of short
	// annotations.
	Pad         int `json:"pad,omitempty"`
	Annotations int `json:"annotations,omitempty"`
	// Patch is merged into the manifest (RFC 7396).
	Patch json.RawMessage `json:"patch,omitempty"`
	// Raw replaces the bytes of the manifest, and Suffix is appended to them.
	Raw    string `json:"raw,omitempty"`
	Suffix string `json:"suffix,omitempty"`
	// Stored changes the bytes after their digest was computed.
	Stored *Change `json:"stored,omitempty"`
}

// Index is an image index.
type Index struct {
	Manifests []Entry `json:"manifests"`
	// Repeat adds copies of the first entry, each for another platform.
	Repeat int             `json:"repeat,omitempty"`
	Patch  json.RawMessage `json:"patch,omitempty"`
}

// Entry is an entry of an index.
type Entry struct {
	Image       *Image            `json:"image,omitempty"`
	Index       *Index            `json:"index,omitempty"`
	Platform    string            `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Patch is merged into the descriptor.
	Patch json.RawMessage `json:"patch,omitempty"`
}

// Layer is a layer and its descriptor.
type Layer struct {
	// Base annotates the layer as the base. Annotations are the other annotations.
	Base        bool              `json:"base,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	MediaType   string            `json:"mediaType,omitempty"`
	// Compress is a list of gzip and zstd. If it is missing, the layer is compressed with gzip.
	Compress []string `json:"compress"`
	Tar      []Member `json:"tar,omitempty"`
	// Text and Hex replace the tar.
	Text string `json:"text,omitempty"`
	Hex  string `json:"hex,omitempty"`
	// Plain changes the tar before it is compressed, Packed the layer before its digest is
	// computed, and Stored the layer after that.
	Plain  *Change `json:"plain,omitempty"`
	Packed *Change `json:"packed,omitempty"`
	Stored *Change `json:"stored,omitempty"`
	// Patch is merged into the descriptor.
	Patch json.RawMessage `json:"patch,omitempty"`
	// Missing omits the blob.
	Missing bool `json:"missing,omitempty"`
}

// Member is an entry of a tar.
type Member struct {
	Name string `json:"name"`
	// NameHex is for names that are not text, and NameLength for long names.
	NameHex    string `json:"nameHex,omitempty"`
	NameLength int    `json:"nameLength,omitempty"`
	// Type is file, symlink, hardlink, char, block, dir, fifo or sparse.
	Type    string `json:"type,omitempty"`
	Link    string `json:"link,omitempty"`
	Content string `json:"content,omitempty"`
	// Good sets the content to a valid package.yaml.
	Good bool `json:"good,omitempty"`
	// Zeros sets the content to this number of zero bytes.
	Zeros int64 `json:"zeros,omitempty"`
	// Size is the size field of the header: a number, "max" for the largest number in base-256,
	// "negative", or any other text.
	Size string `json:"size,omitempty"`
	// PAX are extended records, and PAXLength adds a record with this number of bytes.
	PAX       map[string]string `json:"pax,omitempty"`
	PAXLength int               `json:"paxLength,omitempty"`
	// Repeat writes the member this number of times, each with another name.
	Repeat int `json:"repeat,omitempty"`
}

// Change is a modification of bytes.
type Change struct {
	// Flip inverts the byte at an offset. A negative offset counts from the end.
	Flip *int `json:"flip,omitempty"`
	// Cut removes this number of bytes from the end.
	Cut int `json:"cut,omitempty"`
	// Append adds text, and AppendHex adds bytes.
	Append    string `json:"append,omitempty"`
	AppendHex string `json:"appendHex,omitempty"`
	// Twice repeats the bytes.
	Twice bool `json:"twice,omitempty"`
}

func (c *Change) apply(data []byte) ([]byte, error) {
	if c == nil {
		return data, nil
	}
	tail, err := unhex(c.AppendHex)
	if err != nil {
		return nil, err
	}
	data = append([]byte(nil), data[:max(0, len(data)-c.Cut)]...)
	if c.Flip != nil {
		at := *c.Flip
		if at < 0 {
			at += len(data)
		}
		data[at] ^= 0xff
	}
	if c.Twice {
		data = append(data, data...)
	}
	return append(append(data, c.Append...), tail...), nil
}

// unhex decodes hexadecimal digits that may have spaces between them.
func unhex(s string) ([]byte, error) {
	return hex.DecodeString(strings.Join(strings.Fields(s), ""))
}

// Load reads a table of cases. It fails for unknown fields, missing fields, and two cases with the
// same name.
func Load(path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the table of cases: %w", err)
	}
	var table struct {
		Cases []Case `json:"cases"`
	}
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		return nil, fmt.Errorf("cannot read the table of cases: %w", err)
	}
	seen := map[string]bool{}
	for _, c := range table.Cases {
		if c.ID == "" || c.Expect == "" || c.What == "" || c.Hardening == "" || seen[c.ID] {
			return nil, fmt.Errorf("case %q lacks a field or is there twice", c.ID)
		}
		seen[c.ID] = true
	}
	return table.Cases, nil
}
