package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// limitFlags raise or lower the limits of what is read. A message about a limit
// names its flag; they are not shown in the help of each command but once, in the
// reference.
type limitFlags struct {
	MaxPackageSize      amount `hidden:"" placeholder:"N" help:"Bytes of package.yaml in an image."`
	MaxArchiveSize      amount `hidden:"" placeholder:"N" help:"Bytes of an archive that is read from standard input or from the Docker daemon."`
	MaxLayerSize        amount `hidden:"" placeholder:"N" help:"Bytes to download of the layer that is annotated as the package."`
	MaxImageSize        amount `hidden:"" placeholder:"N" help:"Bytes to download of an image without an annotated layer."`
	MaxUnpackedSize     amount `hidden:"" placeholder:"N" help:"Bytes that a layer unpacks to."`
	MaxCompressionRatio amount `hidden:"" placeholder:"N" help:"Bytes that a layer unpacks to for each of its own."`
	MaxEntries          amount `hidden:"" placeholder:"N" help:"Entries of a tar."`
	MaxHeaderSize       amount `hidden:"" placeholder:"N" help:"Bytes of names and headers in a tar."`
	MaxManifestSize     amount `hidden:"" placeholder:"N" help:"Bytes of a manifest, index or configuration."`
	MaxLayers           amount `hidden:"" placeholder:"N" help:"Layers of a manifest."`
	MaxIndexEntries     amount `hidden:"" placeholder:"N" help:"Manifests of an index."`
	MaxAnnotations      amount `hidden:"" placeholder:"N" help:"Annotations of a manifest."`

	LimitStreamBytes      amount `hidden:"" placeholder:"N" help:"Bytes of package.yaml, or of all files of a folder. Default is --max-package-size when that is given."`
	LimitDocuments        amount `hidden:"" placeholder:"N" help:"YAML documents in a package."`
	LimitDocumentBytes    amount `hidden:"" placeholder:"N" help:"Bytes of one YAML document."`
	LimitComplexBytes     amount `hidden:"" placeholder:"N" help:"Bytes of one YAML document with anchors or other rare syntax."`
	LimitScalarBytes      amount `hidden:"" placeholder:"N" help:"Bytes of one string."`
	LimitDepth            amount `hidden:"" placeholder:"N" help:"Levels of nesting."`
	LimitNodes            amount `hidden:"" placeholder:"N" help:"Keys and values in one document."`
	LimitAliasNodes       amount `hidden:"" placeholder:"N" help:"Keys and values that aliases of one document stand for."`
	LimitSchemaProperties amount `hidden:"" placeholder:"N" help:"Properties in the schemas of one CustomResourceDefinition."`
	LimitPermissionRules  amount `hidden:"" placeholder:"N" help:"Rules in permissionRequests."`
	LimitObjectBytes      amount `hidden:"" placeholder:"N" help:"Bytes of one object as JSON."`
}

// defaultArchiveSize bounds archives that come from a stream: such an archive can
// hold the programs of several platforms.
const defaultArchiveSize = 4 << 30

// imageLimits are the limits of reading images; zero means the default.
func (f limitFlags) imageLimits() oci.Limits {
	return oci.Limits{
		Manifest: int64(f.MaxManifestSize), Layers: int(f.MaxLayers), IndexEntries: int(f.MaxIndexEntries),
		Annotations: int(f.MaxAnnotations), Layer: int64(f.MaxLayerSize), Image: int64(f.MaxImageSize),
		Unpacked: int64(f.MaxUnpackedSize), Ratio: int64(f.MaxCompressionRatio), Entries: int(f.MaxEntries),
		Headers: int64(f.MaxHeaderSize), Package: int64(f.MaxPackageSize),
	}
}

// streamLimits are the limits of reading YAML; zero means the default.
func (f limitFlags) streamLimits() xpkg.Limits {
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

// archiveLimit bounds an archive that is read from a stream.
func (f limitFlags) archiveLimit() int64 {
	if f.MaxArchiveSize > 0 {
		return int64(f.MaxArchiveSize)
	}
	return defaultArchiveSize
}

// limitDefaults are the values that hold without a flag.
func limitDefaults() map[string]int64 {
	d := oci.DefaultLimits()
	defaults := map[string]int64{
		"max-package-size": d.Package, "max-archive-size": defaultArchiveSize, "max-layer-size": d.Layer, "max-image-size": d.Image,
		"max-unpacked-size": d.Unpacked, "max-compression-ratio": d.Ratio, "max-entries": int64(d.Entries), "max-header-size": d.Headers,
		"max-manifest-size": d.Manifest, "max-layers": int64(d.Layers), "max-index-entries": int64(d.IndexEntries), "max-annotations": int64(d.Annotations),
	}
	var l xpkg.Limits
	for _, f := range l.Fields() {
		defaults[f.Name] = int64(f.Default)
	}
	return defaults
}

// amount is a number above zero, or a size such as 64MiB.
type amount int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}}

// UnmarshalText reads a number with an optional unit.
func (a *amount) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a number above zero, or a size such as 64MiB", text)
	}
	*a = amount(n * unit)
	return nil
}

// readStream reads YAML, and one byte more than the limit at most: the reader then
// says what is wrong.
func readStream(r io.Reader, limits xpkg.Limits) ([]byte, error) {
	most := limits.StreamBytes
	if most == 0 {
		most = limits.Fields()[0].Default
	}
	return io.ReadAll(io.LimitReader(r, int64(most)+1))
}
