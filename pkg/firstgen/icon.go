package firstgen

import (
	"bytes"
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// MaxIconBytes is the maximum size of an icon. As a data URI it must fit into the annotations of a CRD
// together with the other metadata.
const MaxIconBytes = 128 << 10

// iconFormats are the extensions of icons, preferred format first.
var iconFormats = []string{".svg", ".png", ".jpg", ".gif"}

var mediaTypes = map[string]string{
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".gif": "image/gif",
}

// An Icon is the icon of a package or resource.
type Icon struct {
	// MediaType is image/svg+xml, image/png, image/jpeg or image/gif.
	MediaType string
	Data      []byte
}

// DataURI returns the icon as a data URI with base64 encoding (RFC 2397).
func (i Icon) DataURI() string {
	return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// preference returns the rank of the format; lower is preferred.
func (i Icon) preference() int {
	return slices.IndexFunc(iconFormats, func(ext string) bool { return mediaTypes[ext] == i.MediaType })
}

// isIcon reports whether a file name is icon.EXTENSION or ends with .icon.EXTENSION.
func isIcon(base string) bool {
	ext := path.Ext(base)
	return mediaTypes[ext] != "" && hasSuffix(strings.TrimSuffix(base, ext), "icon")
}

// misnamedIcon reports whether a file is an icon under a name, or in a format, that is not read.
func misnamedIcon(base string) bool {
	ext := path.Ext(base)
	isImage := slices.Contains(
		[]string{".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tiff"}, strings.ToLower(ext),
	)
	return isImage && !isIcon(base) && hasSuffix(strings.ToLower(strings.TrimSuffix(base, ext)), "icon")
}

// readIcon returns the icon in a file, or nil after reporting why the icon is not used. An unusable icon is a
// warning: it does not affect the function of a package.
func (r *reader) readIcon(f file) *Icon {
	ext := path.Ext(f.path)
	switch {
	case len(f.data) > MaxIconBytes:
		r.report(
			xpkg.Warning, ErrInvalidIcon, f.path, 0, "the icon has %d bytes, at most %d are used", len(f.data), MaxIconBytes,
		)
	case !isImage(ext, f.data):
		r.report(xpkg.Warning, ErrInvalidIcon, f.path, 0, "the file is not a %s image", mediaTypes[ext])
	default:
		return &Icon{mediaTypes[ext], f.data}
	}
	return nil
}

// isImage reports whether data starts like an image of the format.
func isImage(ext string, data []byte) bool {
	switch ext {
	case ".svg":
		return bytes.Contains(data[:min(len(data), 4096)], []byte("<svg"))
	case ".png":
		return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n"))
	case ".jpg":
		return bytes.HasPrefix(data, []byte("\xff\xd8\xff"))
	default:
		return bytes.HasPrefix(data, []byte("GIF87a")) || bytes.HasPrefix(data, []byte("GIF89a"))
	}
}
