package untrusted

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"image"
	_ "image/gif"  // the decoder of GIF icons
	_ "image/jpeg" // the decoder of JPEG icons
	"image/png"
	"io"
	"strings"
)

// Limits of icons.
const (
	// MaxIcon is the maximum size of an icon in bytes.
	MaxIcon       = 512 << 10
	maxIconSide   = 2048
	maxSVGDepth   = 64
	maxSVGContent = 20_000
)

// An Icon is an image that can be served.
type Icon struct {
	// MediaType is image/png or image/svg+xml.
	MediaType string
	Data      []byte
}

// SVGPolicy is the content security policy of an icon in SVG, for readers that open it directly.
const SVGPolicy = "sandbox; default-src 'none'"

// ErrNoIcon is the error for data that cannot be served as an icon.
var ErrNoIcon = errors.New("not a usable icon")

// ParseIcon returns an icon that can be served. A bitmap is encoded again as PNG, which removes everything but its
// pixels. An SVG image is returned unchanged: it must be served with SVGPolicy and shown only in an img element, in
// which browsers run no scripts and load nothing.
func ParseIcon(data []byte) (Icon, error) {
	if len(data) == 0 || len(data) > MaxIcon {
		return Icon{}, ErrNoIcon
	}
	if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		if config.Width > maxIconSide || config.Height > maxIconSide || config.Width <= 0 || config.Height <= 0 {
			return Icon{}, ErrNoIcon
		}
		return encodeBitmap(data)
	}
	if !isSVG(data) {
		return Icon{}, ErrNoIcon
	}
	return Icon{"image/svg+xml", data}, nil
}

func encodeBitmap(data []byte) (Icon, error) {
	bitmap, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return Icon{}, ErrNoIcon
	}
	var out bytes.Buffer
	if err := png.Encode(&out, bitmap); err != nil {
		return Icon{}, ErrNoIcon
	}
	return Icon{"image/png", out.Bytes()}, nil
}

// isSVG reports whether data is an SVG image without a document type, which could define entities, and within the
// limits.
func isSVG(data []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(data))
	depth, root := 0, false
	for range maxSVGContent {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return root && depth == 0
		}
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.Directive:
			// Editors write the document type of SVG. Only an internal subset can define entities.
			if bytes.ContainsAny(t, "[&%") || !bytes.HasPrefix(t, []byte("DOCTYPE svg")) {
				return false
			}
		case xml.StartElement:
			depth++
			if !root && t.Name.Local != "svg" || depth > maxSVGDepth {
				return false
			}
			root = true
		case xml.EndElement:
			depth--
		}
	}
	return false
}

// DataURI returns the content of a data URI with base64 encoding.
func DataURI(uri string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(uri, "data:image/")
	_, encoded, found := strings.Cut(rest, ";base64,")
	if !ok || !found || len(encoded) > MaxIcon*4/3+4 {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	return data, err == nil
}
