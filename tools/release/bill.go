package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the bill of materials of a program: the modules that the go command recorded in it.
func (o *options) writeBill(p platform, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	main := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: "xpkg", Version: o.version,
		BOMRef:     "pkg:golang/" + info.Main.Path + "@" + o.version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@" + o.version,
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}
	components := []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		BOMRef: "pkg:golang/std@" + info.GoVersion, PackageURL: "pkg:golang/std@" + info.GoVersion,
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, BOMRef: url, PackageURL: url,
			Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}},
		})
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Timestamp: o.time.Format(time.RFC3339), Component: &main}
	bill.Components = &components
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return err
	}
	_, err = o.write(fmt.Sprintf("xpkg_%s_%s_%s.cdx.json", strings.TrimPrefix(o.version, "v"), p.os, p.arch), out.Bytes())
	return err
}
