package manifest

import "encoding/json"

// SchemaID is where the schema of files of services is known.
const SchemaID = "https://scaffold.dev/schema/services.json"

// Schema is the JSON schema of files of services, for editors.
func Schema() []byte {
	service := schema{}
	for _, f := range fields {
		s := schema{"description": f.about}
		for k, v := range f.schema {
			s[k] = v
		}
		service[f.name] = s
	}
	all := schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID,
		"title": "Scaffold services", "description": "what `scaffold apply -f` takes; docs/services.md explains it",
		"type": "object", "additionalProperties": false,
		"properties": schema{"services": schema{
			"type": []string{"object", "null"}, "description": "services by name",
			"propertyNames":        matching(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`),
			"additionalProperties": schema{"type": []string{"object", "null"}, "additionalProperties": false, "properties": service},
		}},
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // plain maps and strings
	}
	return append(text, '\n')
}
