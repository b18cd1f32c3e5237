package protocol

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/durationpb" // The messages import Duration and Struct.
	_ "google.golang.org/protobuf/types/known/structpb"
)

// namespace is the Protocol Buffers package of the messages.
const namespace = "apiextensions.fn.proto.v1"

// Types of fields that are not messages of this package.
const (
	structType   = ".google.protobuf.Struct"
	durationType = ".google.protobuf.Duration"
	stringType   = "string"
	bytesType    = "bytes"
	enumType     = "int32" // An enumeration has the encoding of an int32, and unknown values are kept.
)

// field is a field of a message.
type field struct {
	name     string
	number   int32
	kind     string
	repeated bool
	// mapped is a field that maps strings to values of the kind.
	mapped bool
}

// messages returns the fields of the messages of the protocol.
func messages() map[string][]field {
	return map[string][]field{
		"RunFunctionRequest": {
			{name: "meta", number: 1, kind: "RequestMeta"}, {name: "observed", number: 2, kind: "State"},
			{name: "desired", number: 3, kind: "State"},
			{name: "input", number: 4, kind: structType}, {name: "context", number: 5, kind: structType},
			{name: "extra_resources", number: 6, kind: "Resources", mapped: true},
			{name: "credentials", number: 7, kind: "Credentials", mapped: true},
			{name: "required_resources", number: 8, kind: "Resources", mapped: true},
			{name: "required_schemas", number: 9, kind: "Schema", mapped: true},
		},
		"RequestMeta": {{name: "tag", number: 1, kind: stringType}, {
			name: "capabilities", number: 2, kind: enumType, repeated: true,
		}},
		"Schema":         {{name: "openapi_v3", number: 1, kind: structType}},
		"Credentials":    {{name: "credential_data", number: 1, kind: "CredentialData"}},
		"CredentialData": {{name: "data", number: 1, kind: bytesType, mapped: true}},
		"Resources":      {{name: "items", number: 1, kind: "Resource", repeated: true}},
		"RunFunctionResponse": {
			{name: "meta", number: 1, kind: "ResponseMeta"}, {name: "desired", number: 2, kind: "State"},
			{name: "results", number: 3, kind: "Result", repeated: true}, {name: "context", number: 4, kind: structType},
			{name: "requirements", number: 5, kind: "Requirements"},
			{name: "conditions", number: 6, kind: "Condition", repeated: true},
		},
		"ResponseMeta": {{name: "tag", number: 1, kind: stringType}, {name: "ttl", number: 2, kind: durationType}},
		"State": {{name: "composite", number: 1, kind: "Resource"}, {
			name: "resources", number: 2, kind: "Resource", mapped: true,
		}},
		"Resource": {
			{name: "resource", number: 1, kind: structType},
			{name: "connection_details", number: 2, kind: bytesType, mapped: true}, {name: "ready", number: 3, kind: enumType},
		},
		"Result": {
			{name: "severity", number: 1, kind: enumType}, {name: "message", number: 2, kind: stringType},
			{name: "reason", number: 3, kind: stringType}, {name: "target", number: 4, kind: enumType},
		},
		"Condition": {
			{name: "type", number: 1, kind: stringType}, {name: "status", number: 2, kind: enumType},
			{name: "reason", number: 3, kind: stringType},
			{name: "message", number: 4, kind: stringType}, {name: "target", number: 5, kind: enumType},
		},
		"Requirements": {
			{name: "extra_resources", number: 1, kind: "ResourceSelector", mapped: true},
			{name: "resources", number: 2, kind: "ResourceSelector", mapped: true},
			{name: "schemas", number: 3, kind: "SchemaSelector", mapped: true},
		},
		"SchemaSelector": {{name: "api_version", number: 1, kind: stringType}, {name: "kind", number: 2, kind: stringType}},
		"ResourceSelector": {
			{name: "api_version", number: 1, kind: stringType}, {name: "kind", number: 2, kind: stringType},
			{name: "match_name", number: 3, kind: stringType},
			{name: "match_labels", number: 4, kind: "MatchLabels"}, {name: "namespace", number: 5, kind: stringType},
		},
		"MatchLabels": {{name: "labels", number: 1, kind: stringType, mapped: true}},
	}
}

// descriptors returns the descriptors of the messages.
var descriptors = sync.OnceValues(func() (protoreflect.MessageDescriptors, error) {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("run_function.proto"), Package: proto.String(namespace), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/duration.proto", "google/protobuf/struct.proto"},
	}
	for name, fields := range messages() {
		file.MessageType = append(file.MessageType, message(name, fields))
	}
	built, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	return built.Messages(), nil
})

func message(name string, fields []field) *descriptorpb.DescriptorProto {
	out := &descriptorpb.DescriptorProto{Name: proto.String(name)}
	for _, f := range fields {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		kind := f.kind
		if f.mapped {
			entry := entryName(f.name)
			out.NestedType = append(out.NestedType, mapEntry(entry, f.kind))
			kind = "." + namespace + "." + name + "." + entry
		}
		if f.mapped || f.repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		out.Field = append(out.Field, fieldDescriptor(f.name, f.number, kind, label))
	}
	return out
}

// mapEntry returns the message of an entry of a map.
func mapEntry(name, kind string) *descriptorpb.DescriptorProto {
	const label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	return &descriptorpb.DescriptorProto{
		Name: proto.String(name), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			fieldDescriptor("key", 1, stringType, label), fieldDescriptor("value", 2, kind, label),
		},
	}
}

// entryName returns the name that the message of an entry must have: ExtraResourcesEntry for extra_resources.
func entryName(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String() + "Entry"
}

func fieldDescriptor(
	name string, number int32, kind string, label descriptorpb.FieldDescriptorProto_Label,
) *descriptorpb.FieldDescriptorProto {
	out := &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(number), Label: label.Enum()}
	switch kind {
	case stringType:
		out.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
	case bytesType:
		out.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
	case enumType:
		out.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
	default:
		out.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		if !strings.HasPrefix(kind, ".") {
			kind = "." + namespace + "." + kind
		}
		out.TypeName = proto.String(kind)
	}
	return out
}
