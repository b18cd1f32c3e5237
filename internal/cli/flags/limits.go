package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// LimitFlags sets the limits of readers. Messages about a limit contain its flag; the flags are hidden in the
// help of commands and listed once in the reference.
type LimitFlags struct {
	MaxPackageSize      Amount `hidden:"" placeholder:"N" help:"Bytes of package.yaml in an image."`
	MaxArchiveSize      Amount `hidden:"" placeholder:"N" help:"Bytes of an archive that is read from standard input or from the Docker daemon."`
	MaxLayerSize        Amount `hidden:"" placeholder:"N" help:"Bytes to download of the layer that is annotated as the package."`
	MaxImageSize        Amount `hidden:"" placeholder:"N" help:"Bytes to download of an image without an annotated layer."`
	MaxUnpackedSize     Amount `hidden:"" placeholder:"N" help:"Bytes that a layer unpacks to."`
	MaxCompressionRatio Amount `hidden:"" placeholder:"N" help:"Bytes that a layer unpacks to for each of its own."`
	MaxEntries          Amount `hidden:"" placeholder:"N" help:"Entries of a tar."`
	MaxHeaderSize       Amount `hidden:"" placeholder:"N" help:"Bytes of names and headers in a tar."`
	MaxManifestSize     Amount `hidden:"" placeholder:"N" help:"Bytes of a manifest, index or configuration."`
	MaxLayers           Amount `hidden:"" placeholder:"N" help:"Layers of a manifest."`
	MaxIndexEntries     Amount `hidden:"" placeholder:"N" help:"Manifests of an index."`
	MaxAnnotations      Amount `hidden:"" placeholder:"N" help:"Annotations of a manifest."`

	LimitStreamBytes      Amount `hidden:"" placeholder:"N" help:"Bytes of package.yaml, or of all files of a folder. Default is --max-package-size when that is given."`
	LimitDocuments        Amount `hidden:"" placeholder:"N" help:"YAML documents in a package."`
	LimitDocumentBytes    Amount `hidden:"" placeholder:"N" help:"Bytes of one YAML document."`
	LimitComplexBytes     Amount `hidden:"" placeholder:"N" help:"Bytes of one YAML document with anchors or other rare syntax."`
	LimitScalarBytes      Amount `hidden:"" placeholder:"N" help:"Bytes of one string."`
	LimitDepth            Amount `hidden:"" placeholder:"N" help:"Levels of nesting."`
	LimitNodes            Amount `hidden:"" placeholder:"N" help:"Keys and values in one document."`
	LimitAliasNodes       Amount `hidden:"" placeholder:"N" help:"Keys and values that the aliases of one document expand to."`
	LimitSchemaProperties Amount `hidden:"" placeholder:"N" help:"Properties in the schemas of one CustomResourceDefinition."`
	LimitPermissionRules  Amount `hidden:"" placeholder:"N" help:"Rules in permissionRequests."`
	LimitObjectBytes      Amount `hidden:"" placeholder:"N" help:"Bytes of one object as JSON."`
}

// defaultArchiveSize bounds archives that are read from a stream. Such an archive can contain the runtime
// images of several platforms.
const defaultArchiveSize = 4 << 30

// ImageLimits returns the limits of reading images; zero means the default.
func (f LimitFlags) ImageLimits() oci.Limits {
	return oci.Limits{
		Manifest: int64(f.MaxManifestSize), Layers: int(f.MaxLayers), IndexEntries: int(f.MaxIndexEntries),
		Annotations: int(f.MaxAnnotations), Layer: int64(f.MaxLayerSize), Image: int64(f.MaxImageSize),
		Unpacked: int64(f.MaxUnpackedSize), Ratio: int64(f.MaxCompressionRatio), Entries: int(f.MaxEntries),
		Headers: int64(f.MaxHeaderSize), Package: int64(f.MaxPackageSize),
	}
}

// StreamLimits returns the limits of reading YAML; zero means the default.
func (f LimitFlags) StreamLimits() xpkg.Limits {
	bytes := f.LimitStreamBytes
	if bytes == 0 {
		bytes = f.MaxPackageSize
	}
	return xpkg.Limits{
		StreamBytes: int(bytes), Documents: int(f.LimitDocuments), DocumentBytes: int(f.LimitDocumentBytes),
		ComplexBytes: int(f.LimitComplexBytes), ScalarBytes: int(f.LimitScalarBytes), Depth: int(f.LimitDepth),
		Nodes: int(f.LimitNodes), AliasNodes: int(f.LimitAliasNodes), SchemaProperties: int(f.LimitSchemaProperties),
		PermissionRules: int(f.LimitPermissionRules), ObjectBytes: int(f.LimitObjectBytes),
	}
}

// ArchiveLimit bounds an archive that is read from a stream.
func (f LimitFlags) ArchiveLimit() int64 {
	if f.MaxArchiveSize > 0 {
		return int64(f.MaxArchiveSize)
	}
	return defaultArchiveSize
}

// LimitDefaults returns the default values of the flags.
func LimitDefaults() map[string]int64 {
	d := oci.DefaultLimits()
	defaults := map[string]int64{
		"max-package-size": d.Package, "max-archive-size": defaultArchiveSize, "max-layer-size": d.Layer,
		"max-image-size":    d.Image,
		"max-unpacked-size": d.Unpacked, "max-compression-ratio": d.Ratio, "max-entries": int64(d.Entries),
		"max-header-size":   d.Headers,
		"max-manifest-size": d.Manifest, "max-layers": int64(d.Layers), "max-index-entries": int64(d.IndexEntries),
		"max-annotations": int64(d.Annotations),
	}
	var l xpkg.Limits
	for _, f := range l.Fields() {
		defaults[f.Name] = int64(f.Default)
	}
	return defaults
}

// Amount is a positive number, or a size such as 64MiB.
type Amount int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}}

// UnmarshalText reads a number with an optional unit.
func (a *Amount) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is neither a positive number nor a size such as 64MiB", text)
	}
	*a = Amount(n * unit)
	return nil
}
