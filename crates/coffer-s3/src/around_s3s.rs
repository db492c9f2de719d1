//! Everything that exists because s3s does it otherwise than S3 or than this server needs it, and
//! what s3s asks of its user. What would be here without s3s as well belongs elsewhere.

pub(crate) mod xml_elements;

pub(crate) mod xml;

pub(crate) mod xml_bodies;

pub(crate) mod hooks;

pub(crate) mod header_compat;

pub(crate) mod answer_xml;

pub(crate) mod error_words;

pub(crate) mod namespace;

pub(crate) mod finish_response;
