package protocol

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	// MaxMessage is the maximum size of a message in bytes.
	MaxMessage = 32 << 20
	// maxDepth is the maximum depth of messages within a message. A level of a resource takes three.
	maxDepth = 600
	// maxResources is the maximum number of desired resources of a response.
	maxResources = 10_000
)

// MarshalRequest returns the encoding of a request, which is the same for equal requests.
func MarshalRequest(r *Request) ([]byte, error) { return marshal("RunFunctionRequest", r) }

// UnmarshalRequest returns the request of an encoding.
func UnmarshalRequest(raw []byte) (*Request, error) {
	out := &Request{}
	return out, unmarshal("RunFunctionRequest", raw, out)
}

// MarshalResponse returns the encoding of a response.
func MarshalResponse(r *Response) ([]byte, error) { return marshal("RunFunctionResponse", r) }

// UnmarshalResponse returns the response of an encoding. It fails for a message that is too large or too deep, and for
// numbers that no JSON has, such as infinity.
func UnmarshalResponse(raw []byte) (*Response, error) {
	out := &Response{}
	if err := unmarshal("RunFunctionResponse", raw, out); err != nil {
		return nil, err
	}
	if out.Desired != nil && len(out.Desired.Resources) > maxResources {
		return nil, fmt.Errorf(
			"the response has %d desired resources, and at most %d are allowed", len(out.Desired.Resources), maxResources,
		)
	}
	return out, nil
}

func newMessage(name string) (*dynamicpb.Message, error) {
	all, err := descriptors()
	if err != nil {
		return nil, err
	}
	return dynamicpb.NewMessage(all.ByName(protoreflect.Name(name))), nil
}

func marshal(name string, value any) ([]byte, error) {
	m, err := newMessage(name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(text, m); err != nil {
		return nil, err
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err == nil && len(raw) > MaxMessage {
		err = fmt.Errorf("the message has %d bytes, and at most %d are allowed", len(raw), MaxMessage)
	}
	return raw, err
}

func unmarshal(name string, raw []byte, into any) error {
	if len(raw) > MaxMessage {
		return errors.New("the message is too large")
	}
	m, err := newMessage(name)
	if err != nil {
		return err
	}
	if err := decode(raw, m); err != nil {
		return err
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// decode sets a message from its encoding.
func decode(raw []byte, m proto.Message) (err error) {
	// The library panics instead of failing for an entry of a map with a second key of another wire type.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the message cannot be decoded: %v", reason)
		}
	}()
	return proto.UnmarshalOptions{RecursionLimit: maxDepth, DiscardUnknown: true}.Unmarshal(raw, m)
}
