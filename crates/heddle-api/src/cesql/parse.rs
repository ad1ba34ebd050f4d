//! Tokens to a tree, by recursive descent.
//!
//! From loosest to tightest: `AND OR XOR` (to the right), comparisons, `+ -`, `* / %`, `LIKE` and `IN`, then `NOT` and `-`.
//! Note the last: `NOT a = b` is `(NOT a) = b`.

use super::functions::Function;
use super::lex::{Kind, Token, tokens};
use super::pattern::Pattern;
use super::tree::{Arithmetic, Attribute, Chain, Comparison, In, Like, Logic, Node};
use super::{DEPTH_MAX, NODES_MAX, PATTERN_BYTES_MAX, ParseError, TEXT_BYTES_MAX};

pub(super) fn parse(text: &str) -> Result<Node> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ParseError {
            position: TEXT_BYTES_MAX,
            message: format!("the expression is longer than {TEXT_BYTES_MAX} bytes"),
        });
    }
    let mut parser = Parser {
        tokens: &tokens(text)?,
        at: 0,
        end: text.len(),
        nodes: 0,
        nesting: 0,
    };
    let expression = parser.expression()?;
    match parser.peek() {
        None => Ok(expression.node),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

/// A part of the tree with its height, so that operators that lean to the left cannot build a tree too deep to walk.
struct Part {
    node: Node,
    height: usize,
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Where the text ends.
    end: usize,
    nodes: usize,
    nesting: usize,
}

type Result<T> = std::result::Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn expression(&mut self) -> Result<Part> {
        self.nested(Self::logic)
    }

    fn logic(&mut self) -> Result<Part> {
        let mut last = self.comparison()?;
        let mut height = last.height;
        let mut before = Vec::new();
        while let Some(logic) = self.logic_operator() {
            let next = self.comparison()?;
            height = height.max(next.height);
            before.push((last.node, logic));
            last = next;
        }
        if before.is_empty() {
            return Ok(last);
        }
        let chain = Chain {
            before,
            last: last.node,
        };
        self.part(Node::Logic(Box::new(chain)), height)
    }

    fn logic_operator(&mut self) -> Option<Logic> {
        [("AND", Logic::And), ("OR", Logic::Or), ("XOR", Logic::Xor)]
            .into_iter()
            .find_map(|(word, logic)| self.keyword(word).then_some(logic))
    }

    fn comparison(&mut self) -> Result<Part> {
        const OPERATORS: &[(&str, Comparison)] = &[
            ("=", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<>", Comparison::NotEqual),
            ("<", Comparison::Less),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            (">=", Comparison::GreaterOrEqual),
        ];
        self.leftward(OPERATORS, Self::sum, Node::Compare)
    }

    fn sum(&mut self) -> Result<Part> {
        const OPERATORS: &[(&str, Arithmetic)] =
            &[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];
        self.leftward(OPERATORS, Self::product, Node::Arithmetic)
    }

    fn product(&mut self) -> Result<Part> {
        const OPERATORS: &[(&str, Arithmetic)] = &[
            ("*", Arithmetic::Multiply),
            ("/", Arithmetic::Divide),
            ("%", Arithmetic::Remainder),
        ];
        self.leftward(OPERATORS, Self::like_or_in, Node::Arithmetic)
    }

    /// `operand (operator operand)*`, where what stands further left is evaluated first.
    fn leftward<O: Copy>(
        &mut self,
        operators: &[(&str, O)],
        operand: fn(&mut Self) -> Result<Part>,
        node: fn(O, Box<[Node; 2]>) -> Node,
    ) -> Result<Part> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.symbol(symbol)) {
            let right = operand(self)?;
            let height = left.height.max(right.height);
            left = self.part(node(*operator, Box::new([left.node, right.node])), height)?;
        }
        Ok(left)
    }

    fn like_or_in(&mut self) -> Result<Part> {
        let mut part = self.unary()?;
        loop {
            let start = self.at;
            let negated = self.keyword("NOT");
            if self.keyword("LIKE") {
                let pattern = self.pattern()?;
                let like = Like {
                    operand: part.node,
                    pattern,
                    negated,
                };
                part = self.part(Node::Like(Box::new(like)), part.height)?;
            } else if self.keyword("IN") {
                self.expect("(")?;
                let (set, height) = self.list()?;
                let in_ = In {
                    operand: part.node,
                    set,
                    negated,
                };
                part = self.part(Node::In(Box::new(in_)), part.height.max(height))?;
            } else {
                self.at = start;
                return Ok(part);
            }
        }
    }

    fn pattern(&mut self) -> Result<Pattern> {
        match self.peek() {
            Some(Kind::Text(pattern)) if pattern.len() > PATTERN_BYTES_MAX => Err(self.error(
                format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"),
            )),
            Some(Kind::Text(pattern)) => {
                let pattern = Pattern::new(pattern).map_err(|wide| self.error(wide.to_string()))?;
                self.at += 1;
                Ok(pattern)
            }
            _ => Err(self.unexpected("a pattern in quotes")),
        }
    }

    fn unary(&mut self) -> Result<Part> {
        if self.keyword("NOT") {
            let operand = self.nested(Self::unary)?;
            self.part(Node::Not(Box::new(operand.node)), operand.height)
        } else if let Some(integer) = self.signed_integer()? {
            self.part(Node::Integer(integer), 0)
        } else if self.symbol("-") {
            let operand = self.nested(Self::unary)?;
            self.part(Node::Negate(Box::new(operand.node)), operand.height)
        } else if self.keyword("EXISTS") {
            let name = self.attribute()?.name;
            self.part(Node::Exists(name), 0)
        } else {
            self.primary()
        }
    }

    /// A sign that touches the digits behind it belongs to them: the lowest integer has no positive counterpart.
    fn signed_integer(&mut self) -> Result<Option<i32>> {
        let [sign, digits] = match self.tokens.get(self.at..) {
            Some([sign, digits, ..]) => [sign, digits],
            _ => return Ok(None),
        };
        match (&sign.kind, &digits.kind) {
            (Kind::Symbol(symbol @ ("-" | "+")), Kind::Digits(text))
                if sign.position + 1 == digits.position =>
            {
                let integer = self.integer(&format!("{symbol}{text}"))?;
                self.at += 2;
                Ok(Some(integer))
            }
            _ => Ok(None),
        }
    }

    fn integer(&self, text: &str) -> Result<i32> {
        text.parse()
            .map_err(|_| self.error(format!("{text} does not fit into 32 bits")))
    }

    fn primary(&mut self) -> Result<Part> {
        match self.peek() {
            Some(Kind::Digits(digits)) => {
                let integer = self.integer(digits)?;
                self.at += 1;
                self.part(Node::Integer(integer), 0)
            }
            Some(Kind::Text(text)) => {
                let node = Node::Text(text.as_str().into());
                self.at += 1;
                self.part(node, 0)
            }
            Some(Kind::Symbol("(")) => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Kind::Word(word)) => self.word(word),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn word(&mut self, word: &str) -> Result<Part> {
        if self.keyword("TRUE") {
            self.part(Node::Boolean(true), 0)
        } else if self.keyword("FALSE") {
            self.part(Node::Boolean(false), 0)
        } else if self.tokens.get(self.at + 1).map(|next| &next.kind) == Some(&Kind::Symbol("(")) {
            self.call(word)
        } else {
            let attribute = self.attribute()?;
            self.part(Node::Attribute(attribute), 0)
        }
    }

    fn call(&mut self, name: &str) -> Result<Part> {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        if !is_name || is_keyword(name) {
            return Err(self.unexpected("the name of a function"));
        }
        self.at += 2;
        let (arguments, height) = if self.symbol(")") {
            (Box::default(), 0)
        } else {
            self.list()?
        };
        let function = Function::find(name, arguments.len());
        self.part(Node::Call(function, arguments), height)
    }

    /// `expression (, expression)* )`, and the height of the highest.
    fn list(&mut self) -> Result<(Box<[Node]>, usize)> {
        let mut nodes = Vec::new();
        let mut height = 0;
        loop {
            let part = self.expression()?;
            height = height.max(part.height);
            nodes.push(part.node);
            if !self.symbol(",") {
                self.expect(")")?;
                return Ok((nodes.into(), height));
            }
        }
    }

    fn attribute(&mut self) -> Result<Attribute> {
        let is_name = |word: &str| !word.contains('_') && !is_keyword(word);
        match self.peek() {
            Some(Kind::Word(word)) if is_name(word) => {
                self.at += 1;
                Ok(Attribute::new(word))
            }
            _ => Err(self.unexpected("the name of an attribute")),
        }
    }

    fn part(&mut self, node: Node, height_below: usize) -> Result<Part> {
        self.nodes += 1;
        let height = height_below + 1;
        if self.nodes > NODES_MAX {
            return Err(self.error(format!("the expression has more than {NODES_MAX} parts")));
        }
        if height > DEPTH_MAX {
            return Err(self.too_deep());
        }
        Ok(Part { node, height })
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Part>) -> Result<Part> {
        self.nesting += 1;
        if self.nesting > DEPTH_MAX {
            return Err(self.too_deep());
        }
        let part = inner(self);
        self.nesting -= 1;
        part
    }

    fn peek(&self) -> Option<&'a Kind<'a>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// Takes the keyword if it comes next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let found =
            matches!(self.peek(), Some(Kind::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    /// Takes the symbol if it comes next.
    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Symbol(next)) if *next == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(symbol))
        }
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Kind::Word(text) | Kind::Digits(text)) => (*text).to_owned(),
            Some(Kind::Symbol(symbol)) => (*symbol).to_owned(),
            Some(Kind::Text(_)) => "a text".to_owned(),
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    fn too_deep(&self) -> ParseError {
        self.error(format!("the expression is nested deeper than {DEPTH_MAX}"))
    }

    fn error(&self, message: String) -> ParseError {
        let position = self
            .tokens
            .get(self.at)
            .map_or(self.end, |token| token.position);
        ParseError { position, message }
    }
}

const KEYWORDS: &[&str] = &[
    "AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE",
];

fn is_keyword(word: &str) -> bool {
    KEYWORDS
        .iter()
        .any(|keyword| word.eq_ignore_ascii_case(keyword))
}
