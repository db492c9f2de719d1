//! Conditions: keys, the values that a request has for them, and operators that compare them with
//! what a policy says. Nothing here knows statements.

mod decimal;

mod timestamp;

mod key;

mod value;

mod variable;

mod pattern;

mod arn_pattern;

mod operator;

mod operands;

mod condition;

pub(crate) use condition::Condition;
pub use decimal::Decimal;
pub use key::Key;
pub(crate) use key::KeyPlace;
pub(crate) use operands::Operands;
pub(crate) use operator::Qualifier;
pub(crate) use pattern::{Pattern, Syntax};
pub use timestamp::Timestamp;
pub use value::{ListedValues, NoValues, Value, Values};
pub(crate) use variable::PatternError;
